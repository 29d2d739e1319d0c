//! Memory that the device accesses by itself: allocated by the driver, or pinned in place.
#![allow(unsafe_code)]

use super::driver::{Address, Gpu, Opaque, Trouble};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory of the device.
pub(super) struct OnDevice {
    pub(super) at: Address,
    gpu: Arc<Gpu>,
}

impl OnDevice {
    /// # Errors
    /// There is none.
    pub(super) fn new(gpu: &Arc<Gpu>, bytes: usize) -> Result<OnDevice, Trouble> {
        let mut at = 0;
        // SAFETY: one address is written.
        gpu.driver.check("cuMemAlloc", unsafe { (gpu.driver.calls.memory_take)(&raw mut at, bytes) })?;
        Ok(OnDevice { at, gpu: gpu.clone() })
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        // SAFETY: the memory is this value's own.
        unsafe { (self.gpu.driver.calls.memory_give)(self.at) };
    }
}

/// An array of this process that the device sees, too.
pub(super) struct Shared<T> {
    base: *mut T,
    length: usize,
    /// Address for the device.
    pub(super) at: Address,
    gpu: Arc<Gpu>,
}

// SAFETY: the value owns its memory as a vector does.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T: Copy + Default> Shared<T> {
    /// # Errors
    /// There is no memory.
    pub(super) fn new(gpu: &Arc<Gpu>, length: usize) -> Result<Shared<T>, Trouble> {
        let (mut base, mut at): (Opaque, Address) = (std::ptr::null_mut(), 0);
        let bytes = length * size_of::<T>();
        // SAFETY: one pointer is written.
        let taken = unsafe { (gpu.driver.calls.host_take)(&raw mut base, bytes, PORTABLE | MAPPED) };
        gpu.driver.check("cuMemHostAlloc", taken)?;
        // SAFETY: the memory was taken just now.
        let seen = unsafe { (gpu.driver.calls.host_address)(&raw mut at, base, 0) };
        let shared = Shared { base: base.cast::<T>(), length, at, gpu: gpu.clone() };
        gpu.driver.check("cuMemHostGetDevicePointer", seen)?;
        // SAFETY: there is room for so many, and pages are aligned for each of these types.
        (0..length).for_each(|place| unsafe { shared.base.add(place).write(T::default()) });
        Ok(shared)
    }

    /// The array. The device has no work that touches it: the launcher of such work waits for its end.
    pub(super) fn items(&mut self) -> &mut [T] {
        // SAFETY: so many were written at first, and nothing else has the pointer meanwhile.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.length) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the memory is this value's own.
        unsafe { (self.gpu.driver.calls.host_give)(self.base.cast()) };
    }
}

/// Beginning of a mapping, pinned as far as it was needed yet.
pub(super) struct Pinned {
    base: Opaque,
    /// Bytes of the mapping, whole pages.
    most: usize,
    access: Access,
    pinned: Mutex<usize>,
    gpu: Arc<Gpu>,
}

/// Access that the device has to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Read,
    Write,
}

// SAFETY: the pointer is only handed to the driver, under the lock.
unsafe impl Send for Pinned {}
// SAFETY: as above.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Creates a handle of a mapping that outlives the value.
    pub(super) fn new(gpu: &Arc<Gpu>, base: *mut u8, most: usize, access: Access) -> Pinned {
        Pinned { base: base.cast(), most: most.next_multiple_of(PAGE), access, pinned: Mutex::new(0), gpu: gpu.clone() }
    }

    /// Pins `bytes`, if they are not pinned yet; more than that, so that it is rarely done. No job has the memory
    /// meanwhile.
    ///
    /// # Errors
    /// It cannot be pinned.
    pub(super) fn reach(&self, bytes: usize) -> Result<(), Trouble> {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= *pinned {
            return Ok(());
        }
        let driver = &self.gpu.driver;
        if std::mem::take(&mut *pinned) > 0 {
            // SAFETY: it was pinned.
            driver.check("cuMemHostUnregister", unsafe { (driver.calls.host_unregister)(self.base) })?;
        }
        let wanted = bytes.next_power_of_two().clamp(LEAST_PINNED, self.most.max(LEAST_PINNED)).min(self.most);
        let flags = if self.access == Access::Read { PORTABLE | READ_ONLY } else { PORTABLE | REGISTER_MAPPED };
        // SAFETY: so many bytes are mapped, with that access, for longer than this value lives.
        driver.check("cuMemHostRegister", unsafe { (driver.calls.host_register)(self.base, wanted, flags) })?;
        *pinned = wanted;
        Ok(())
    }

    /// Address for the device.
    ///
    /// # Errors
    /// It is not pinned.
    pub(super) fn address(&self) -> Result<Address, Trouble> {
        let mut at = 0;
        // SAFETY: one address is written.
        let seen = unsafe { (self.gpu.driver.calls.host_address)(&raw mut at, self.base, 0) };
        self.gpu.driver.check("cuMemHostGetDevicePointer", seen)?;
        Ok(at)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if *self.pinned.lock().unwrap_or_else(PoisonError::into_inner) > 0 && self.gpu.enter().is_ok() {
            // SAFETY: it was pinned, and no job has the memory any more.
            unsafe { (self.gpu.driver.calls.host_unregister)(self.base) };
        }
    }
}

const PAGE: usize = 4096;

/// Pinning costs a call and a fraction of a millisecond, whatever the size.
const LEAST_PINNED: usize = 256 << 10;

// Numbers of cuda.h, for memory that is taken and for memory that is registered.
const PORTABLE: u32 = 0x01;
const MAPPED: u32 = 0x02;
const REGISTER_MAPPED: u32 = 0x02;
const READ_ONLY: u32 = 0x08;
