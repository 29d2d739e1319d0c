//! CUDA's driver, loaded at run time: `libcuda.so.1`, which comes with NVIDIA's kernel module. The toolkit is not
//! needed.
#![allow(unsafe_code)]

use super::layout::{KERNELS, MATCH_SHARED};
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// An address of the device's.
pub(super) type Address = u64;
/// Handle of an object of the driver, or memory of this process.
pub(super) type Opaque = *mut c_void;

macro_rules! calls {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// Functions of the driver that are used here.
        pub(super) struct Calls {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        impl Calls {
            fn load(handle: &Handle) -> Result<Calls, String> {
                // SAFETY: the types are those of cuda.h, versions 3.2 to 13.
                unsafe { Ok(Calls { $($name: *handle.get($symbol.as_bytes()).map_err(|_| format!("it lacks {}", $symbol))?,)* }) }
            }
        }
    };
}

calls! {
    init = "cuInit" (c_uint);
    driver_version = "cuDriverGetVersion" (*mut c_int);
    device_count = "cuDeviceGetCount" (*mut c_int);
    device_get = "cuDeviceGet" (*mut c_int, c_int);
    device_name = "cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_attribute = "cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    context_flags = "cuDevicePrimaryCtxSetFlags_v2" (c_int, c_uint);
    context_retain = "cuDevicePrimaryCtxRetain" (*mut Opaque, c_int);
    context_set = "cuCtxSetCurrent" (Opaque);
    module_load = "cuModuleLoadData" (*mut Opaque, *const c_void);
    module_function = "cuModuleGetFunction" (*mut Opaque, Opaque, *const c_char);
    function_attribute = "cuFuncSetAttribute" (Opaque, c_int, c_int);
    memory_take = "cuMemAlloc_v2" (*mut Address, usize);
    memory_give = "cuMemFree_v2" (Address);
    host_take = "cuMemHostAlloc" (*mut Opaque, usize, c_uint);
    host_give = "cuMemFreeHost" (Opaque);
    host_register = "cuMemHostRegister_v2" (Opaque, usize, c_uint);
    host_unregister = "cuMemHostUnregister" (Opaque);
    host_address = "cuMemHostGetDevicePointer_v2" (*mut Address, Opaque, c_uint);
    copy_to = "cuMemcpyHtoDAsync_v2" (Address, *const c_void, usize, Opaque);
    stream_create = "cuStreamCreate" (*mut Opaque, c_uint);
    stream_destroy = "cuStreamDestroy_v2" (Opaque);
    stream_wait = "cuStreamSynchronize" (Opaque);
    launch = "cuLaunchKernel" (Opaque, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Opaque, *mut Opaque, *mut Opaque);
    error_name = "cuGetErrorName" (c_int, *mut *const c_char);
    error_text = "cuGetErrorString" (c_int, *mut *const c_char);
}

/// The driver. It is never unloaded: it has threads of its own.
pub(super) struct Driver {
    pub(super) calls: Calls,
    _handle: ManuallyDrop<Handle>,
}

/// A device that was examined.
pub(super) struct Device {
    handle: c_int,
    /// Name and driver version, without spaces.
    pub(super) version: String,
    /// Whether read-only memory can be pinned.
    pins_to_read: bool,
}

/// An opened device. It lives as long as its process.
pub(super) struct Gpu {
    pub(super) driver: Driver,
    pub(super) version: String,
    pub(super) pins_to_read: bool,
    context: Opaque,
    pub(super) matcher: Opaque,
    pub(super) coder: Opaque,
    pub(super) gatherer: Opaque,
}

// SAFETY: the driver's functions may be called on any thread, and its handles are good on all of them.
unsafe impl Send for Gpu {}
// SAFETY: as above.
unsafe impl Sync for Gpu {}

/// A call that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Trouble {
    /// CUDA's error number.
    pub(super) code: i32,
    text: String,
}

impl Trouble {
    /// Whether the device's context is unusable: the kernel failed, or the hardware.
    pub(super) fn is_final(&self) -> bool {
        !matches!(self.code, OUT_OF_MEMORY | INVALID_VALUE | HOST_MEMORY_REGISTERED | HOST_MEMORY_NOT_REGISTERED | NOT_SUPPORTED)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Trouble> for String {
    /// Text as that of [`Driver::load`].
    fn from(trouble: Trouble) -> String {
        format!("cannot be used: {trouble}")
    }
}

impl Driver {
    /// Loads the driver and initializes it.
    ///
    /// # Errors
    /// The end of a sentence that begins with the device's name: `cannot be used: ...`.
    pub(super) fn load() -> Result<Driver, String> {
        // The driver is where the system's loader finds it; it has no other known place.
        // SAFETY: its initializers run in a process that is there for it.
        let handle = unsafe { Handle::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL) };
        let handle = ManuallyDrop::new(handle.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            format!("cannot be used: NVIDIA's driver is not there ({cause})")
        })?);
        let calls = Calls::load(&handle).map_err(|reason| format!("cannot be used: NVIDIA's driver is too old: {reason}"))?;
        let driver = Driver { calls, _handle: handle };
        // SAFETY: takes a number.
        driver.check("cuInit", unsafe { (driver.calls.init)(0) })?;
        Ok(driver)
    }

    /// Examines the device of a number.
    ///
    /// # Errors
    /// There is none, or it is too old.
    pub(super) fn device(&self, number: u32) -> Result<Device, String> {
        let (mut count, mut handle, mut version) = (0, 0, 0);
        // SAFETY: each call writes one number, here and below.
        self.check("cuDeviceGetCount", unsafe { (self.calls.device_count)(&raw mut count) })?;
        let place = c_int::try_from(number).ok().filter(|number| *number < count);
        let place = place.ok_or_else(|| format!("is not there: this machine has {count}"))?;
        // SAFETY: as above.
        self.check("cuDeviceGet", unsafe { (self.calls.device_get)(&raw mut handle, place) })?;
        // SAFETY: as above.
        self.check("cuDriverGetVersion", unsafe { (self.calls.driver_version)(&raw mut version) })?;
        let mut name = [0; 128];
        // SAFETY: so many bytes are written at most.
        let got = unsafe { (self.calls.device_name)(name.as_mut_ptr(), name.len() as c_int - 1, handle) };
        self.check("cuDeviceGetName", got)?;
        // SAFETY: the array ends with a zero that was not written over.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().replace(char::is_whitespace, "_");
        let capability = (self.attribute(handle, CAPABILITY_MAJOR)?, self.attribute(handle, CAPABILITY_MINOR)?);
        if capability < OLDEST {
            let (major, minor) = capability;
            return Err(format!("is too old: {name} has compute capability {major}.{minor}, 8.0 is needed"));
        }
        let pins_to_read = self.attribute(handle, PINS_TO_READ).unwrap_or(0) == 1;
        Ok(Device { handle, version: format!("{name}/CUDA-{}.{}", version / 1000, version % 1000 / 10), pins_to_read })
    }

    fn attribute(&self, device: c_int, which: c_int) -> Result<c_int, Trouble> {
        let mut value = 0;
        // SAFETY: one number is written.
        self.check("cuDeviceGetAttribute", unsafe { (self.calls.device_attribute)(&raw mut value, which, device) })?;
        Ok(value)
    }

    /// Checks the result of a call.
    ///
    /// # Errors
    /// It failed.
    pub(super) fn check(&self, call: &str, code: c_int) -> Result<(), Trouble> {
        if code == 0 {
            return Ok(());
        }
        let say = |tell: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int| {
            let mut text: *const c_char = std::ptr::null();
            // SAFETY: one pointer is written, to a text that lasts as long as the driver, or none.
            let told = unsafe { tell(code, &raw mut text) } == 0 && !text.is_null();
            // SAFETY: as above.
            told.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        let (name, text) = (say(self.calls.error_name), say(self.calls.error_text));
        let (name, text) = (name.unwrap_or_else(|| code.to_string()), text.unwrap_or_default());
        Err(Trouble { code, text: format!("{call}: {name} ({text})") })
    }
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    /// As those of [`Driver::load`] and [`Driver::device`].
    pub(super) fn open(number: u32) -> Result<Arc<Gpu>, String> {
        let driver = Driver::load()?;
        let Device { handle, version, pins_to_read } = driver.device(number)?;
        let calls = &driver.calls;
        // SAFETY: a number and flags. A thread that waits for the device sleeps.
        driver.check("cuDevicePrimaryCtxSetFlags", unsafe { (calls.context_flags)(handle, WAIT_ASLEEP) })?;
        let mut context = std::ptr::null_mut();
        // SAFETY: one pointer is written.
        driver.check("cuDevicePrimaryCtxRetain", unsafe { (calls.context_retain)(&raw mut context, handle) })?;
        // SAFETY: the context is the driver's own.
        driver.check("cuCtxSetCurrent", unsafe { (calls.context_set)(context) })?;
        let kernels = CString::new(KERNELS).map_err(|error| error.to_string())?;
        let mut module = std::ptr::null_mut();
        // SAFETY: the text ends with a zero.
        let loaded = unsafe { (calls.module_load)(&raw mut module, kernels.as_ptr().cast()) };
        driver.check("cuModuleLoadData", loaded)?;
        let function = |name: &CStr| {
            let mut function = std::ptr::null_mut();
            // SAFETY: the module was loaded, the name ends with a zero.
            let found = unsafe { (calls.module_function)(&raw mut function, module, name.as_ptr()) };
            driver.check("cuModuleGetFunction", found).map(|()| function)
        };
        let (matcher, coder, gatherer) = (function(c"terse_match")?, function(c"terse_code")?, function(c"terse_gather")?);
        // SAFETY: the function is of that module.
        let set = unsafe { (calls.function_attribute)(matcher, MOST_SHARED_BYTES, MATCH_SHARED as c_int) };
        driver.check("cuFuncSetAttribute", set)?;
        // As many groups as fit: it has no other use for the rest of that memory. SAFETY: as above.
        unsafe { (calls.function_attribute)(matcher, SHARED_CARVEOUT, 100) };
        Ok(Arc::new(Gpu { driver, version, pins_to_read, context, matcher, coder, gatherer }))
    }

    /// Makes the device's context current on this thread.
    ///
    /// # Errors
    /// The driver's error.
    pub(super) fn enter(&self) -> Result<(), Trouble> {
        // SAFETY: the context lives as long as the process.
        self.driver.check("cuCtxSetCurrent", unsafe { (self.driver.calls.context_set)(self.context) })
    }
}

const OUT_OF_MEMORY: i32 = 2;
const INVALID_VALUE: i32 = 1;
const HOST_MEMORY_REGISTERED: i32 = 712;
const HOST_MEMORY_NOT_REGISTERED: i32 = 713;
const NOT_SUPPORTED: i32 = 801;

/// Kernels have 99 KB of shared memory for a group from this capability on.
const OLDEST: (c_int, c_int) = (8, 0);

// Numbers of cuda.h.
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const PINS_TO_READ: c_int = 113;
const WAIT_ASLEEP: c_uint = 0x04;
const MOST_SHARED_BYTES: c_int = 8;
const SHARED_CARVEOUT: c_int = 9;
