//! A driver of CUDA's without a GPU, for tests: as much of `libcuda.so.1` as the engine `device cuda` uses. The device's
//! memory is the process's, and kernels run at once, on the processor. Wrong use is an error, as with the driver.
//!
//! `TERSE_TESTCUDA_FAULTS` names a file of the test card's (`terse_testcard::faults`) with the faults of batches. Two words
//! more stand in lines of their own: `absent` (there is no device) and `full` (the device has no memory).
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, PoisonError};
use terse_testcard::faults::{Fault, draw};

/// Resources that this process has requested.
#[derive(Default)]
struct State {
    /// Memory of the device, and pinned memory that was allocated here: lengths by addresses.
    taken: BTreeMap<usize, usize>,
    /// Memory that was pinned in place, and whether the device may write to it.
    registered: BTreeMap<usize, (usize, bool)>,
    /// The coded body that was written last.
    last_target: usize,
}

static STATE: Mutex<State> = Mutex::new(State { taken: BTreeMap::new(), registered: BTreeMap::new(), last_target: 0 });
static FAULTS: LazyLock<Option<PathBuf>> = LazyLock::new(|| std::env::var_os("TERSE_TESTCUDA_FAULTS").map(PathBuf::from));
static BATCHES: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" {
    fn terse_emulate(kernel: *const c_char, groups: c_uint, threads: c_uint, shared: c_uint, arguments: *mut *mut c_void) -> bool;
}

fn state() -> std::sync::MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn says(word: &str) -> bool {
    let text = FAULTS.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    text.is_some_and(|text| text.lines().any(|line| line == word))
}

impl State {
    /// Whether so many bytes from there on are one piece of memory that the device reaches.
    fn reaches(&self, at: usize, bytes: usize) -> bool {
        let within = |begin: usize, length: usize| at + bytes <= begin + length;
        self.taken.range(..=at).next_back().is_some_and(|(begin, length)| within(*begin, *length))
            || self.registered.range(..=at).next_back().is_some_and(|(begin, (length, _))| within(*begin, *length))
    }

    fn take(&mut self, bytes: usize) -> usize {
        // SAFETY: the length is not zero; a failure gives null.
        let at = unsafe { libc::aligned_alloc(4096, bytes.max(1).next_multiple_of(4096)) } as usize;
        self.taken.insert(at, bytes);
        at
    }

    fn give(&mut self, at: usize) -> c_int {
        match self.taken.remove(&at) {
            // SAFETY: it was allocated here.
            Some(_) => unsafe { libc::free(at as *mut c_void) },
            None => return INVALID_VALUE,
        }
        SUCCESS
    }
}

macro_rules! succeed {
    ($($name:ident ($($argument:ident: $type:ty),*);)*) => {
        $(
            /// Does nothing, as if it had succeeded.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($(_: $type),*) -> c_int {
                SUCCESS
            }
        )*
    };
}

succeed! {
    cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint);
    cuCtxSetCurrent(context: *mut c_void);
    cuFuncSetAttribute(function: *mut c_void, attribute: c_int, value: c_int);
    cuStreamDestroy_v2(stream: *mut c_void);
}

/// Writes a value to the caller's place.
fn put<T>(to: *mut T, value: T) -> c_int {
    // SAFETY: callers of the driver give places that can be written.
    unsafe { to.write(value) };
    SUCCESS
}

/// Fails where there is no device.
#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_: c_uint) -> c_int {
    if says("absent") { NO_DEVICE } else { SUCCESS }
}

/// Version 13.0.
#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    put(version, 13_000)
}

/// A single device.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    put(count, 1)
}

/// Its number.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(device: *mut c_int, number: c_int) -> c_int {
    if number == 0 { put(device, 0) } else { INVALID_DEVICE }
}

/// Its name.
///
/// # Safety
/// `name` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, _: c_int) -> c_int {
    let own = c"Emulated GPU".to_bytes_with_nul();
    if (length as usize) < own.len() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(own.as_ptr().cast(), name, own.len()) };
    SUCCESS
}

/// Attributes that the engine asks for: the capability is 9.0, and memory that is only read can be pinned.
#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _: c_int) -> c_int {
    put(
        value,
        match attribute {
            75 => 9,
            113 => 1,
            _ => 0,
        },
    )
}

/// The only context.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, _: c_int) -> c_int {
    put(context, std::ptr::without_provenance_mut(1))
}

/// Takes every text that looks like kernels.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut *mut c_void, text: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text.cast()) }.to_bytes();
    let is_assembly = text.windows(8).any(|word| word == b".version");
    if is_assembly { put(module, std::ptr::without_provenance_mut(1)) } else { INVALID_IMAGE }
}

/// Finds a kernel by its name.
///
/// # Safety
/// `name` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut *mut c_void, _: *mut c_void, name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    match KERNELS.iter().find(|kernel| **kernel == name) {
        Some(kernel) => put(function, kernel.as_ptr().cast_mut().cast()),
        None => NOT_FOUND,
    }
}

/// Memory of the device.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(at: *mut u64, bytes: usize) -> c_int {
    if says("full") { OUT_OF_MEMORY } else { put(at, state().take(bytes) as u64) }
}

/// Gives it back.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(at: u64) -> c_int {
    state().give(at as usize)
}

/// Memory of the process that the device sees.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(at: *mut *mut c_void, bytes: usize, _: c_uint) -> c_int {
    put(at, state().take(bytes) as *mut c_void)
}

/// Gives it back.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(at: *mut c_void) -> c_int {
    state().give(at as usize)
}

/// Pins memory; memory that is pinned already is not pinned again.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostRegister_v2(at: *mut c_void, bytes: usize, flags: c_uint) -> c_int {
    let (at, mut state) = (at as usize, state());
    let overlaps = state.registered.range(..at + bytes).next_back().is_some_and(|(begin, (length, _))| begin + length > at);
    if overlaps {
        return ALREADY_REGISTERED;
    }
    if bytes == 0 || at % 4096 != 0 {
        return INVALID_VALUE;
    }
    state.registered.insert(at, (bytes, flags & READ_ONLY == 0));
    SUCCESS
}

/// Unpins it.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostUnregister(at: *mut c_void) -> c_int {
    if state().registered.remove(&(at as usize)).is_some() { SUCCESS } else { NOT_REGISTERED }
}

/// The same address: the device's memory is the process's.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostGetDevicePointer_v2(address: *mut u64, at: *mut c_void, _: c_uint) -> c_int {
    if state().reaches(at as usize, 1) { put(address, at as u64) } else { INVALID_VALUE }
}

/// Copies at once.
///
/// # Safety
/// `from` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, _: *mut c_void) -> c_int {
    if !state().reaches(to as usize, bytes) {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's promise; the place was taken here.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), to as *mut u8, bytes) };
    SUCCESS
}

/// A stream; all streams are the same.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _: c_uint) -> c_int {
    put(stream, std::ptr::without_provenance_mut(1))
}

/// Runs a kernel.
///
/// # Safety
/// The arguments are the kernel's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    groups: c_uint,
    _: c_uint,
    _: c_uint,
    threads: c_uint,
    _: c_uint,
    _: c_uint,
    shared: c_uint,
    _: *mut c_void,
    arguments: *mut *mut c_void,
    _: *mut *mut c_void,
) -> c_int {
    let mut state = state();
    // SAFETY: functions are names of kernels.
    let is_last = unsafe { CStr::from_ptr(function.cast()) } == KERNELS[2];
    if is_last {
        // SAFETY: its second argument is an array of bodies, which begin with their targets.
        let target = unsafe { *(*arguments.add(1)).cast::<*const u64>().read() } as usize;
        let writes = state.registered.range(..=target).next_back().is_some_and(|(_, (_, writes))| *writes);
        if !writes {
            return ILLEGAL_ADDRESS;
        }
        state.last_target = target;
    }
    // SAFETY: the caller's promise; the emulation runs one kernel at a time, which the lock sees to.
    let ran = unsafe { terse_emulate(function.cast(), groups, threads, shared, arguments) };
    drop(state);
    if ran { SUCCESS } else { NOT_FOUND }
}

/// Returns at once, since all is done already. Batches get their faults here.
#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_: *mut c_void) -> c_int {
    // Numbers go on in the next process.
    let number = BATCHES.fetch_add(1, Relaxed) + u64::from(std::process::id()) * 1009;
    let target = state().last_target as *mut u8;
    match FAULTS.as_ref().and_then(|path| draw(path, number)) {
        None => return SUCCESS,
        Some(Fault::Error) => return LAUNCH_FAILED,
        Some(Fault::Hang) => loop {
            // SAFETY: it waits for a signal.
            unsafe { libc::pause() };
        },
        // SAFETY: a coded body was written there, of more than so many bytes.
        Some(Fault::Garbage | Fault::Noise) => unsafe { *target.add(2) ^= 0x10 },
        Some(Fault::Abort) => std::process::abort(),
        Some(Fault::Die) => std::process::exit(0),
    }
    SUCCESS
}

/// The name of an error.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: c_int, text: *mut *const c_char) -> c_int {
    put(
        text,
        match code {
            OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY".as_ptr(),
            NO_DEVICE => c"CUDA_ERROR_NO_DEVICE".as_ptr(),
            LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED".as_ptr(),
            _ => c"CUDA_ERROR".as_ptr(),
        },
    )
}

/// Its text.
#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(_: c_int, text: *mut *const c_char) -> c_int {
    put(text, c"said by the emulation".as_ptr())
}

const KERNELS: [&CStr; 3] = [c"terse_match", c"terse_code", c"terse_gather"];

const READ_ONLY: c_uint = 0x08;

// Numbers of cuda.h.
const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const NO_DEVICE: c_int = 100;
const INVALID_DEVICE: c_int = 101;
const INVALID_IMAGE: c_int = 200;
const NOT_FOUND: c_int = 500;
const ILLEGAL_ADDRESS: c_int = 700;
const ALREADY_REGISTERED: c_int = 712;
const NOT_REGISTERED: c_int = 713;
const LAUNCH_FAILED: c_int = 719;
