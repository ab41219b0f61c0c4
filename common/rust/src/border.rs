//! The border itself: owned bytes going out, borrowed bytes coming in, panics turned into errors.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::slice;

/// Bytes that Rust allocated; `tutti_bytes_free` frees them.
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    size: usize,
}

impl Bytes {
    pub fn own(bytes: Vec<u8>) -> Bytes {
        let mut boxed = bytes.into_boxed_slice();
        let out = Bytes { data: boxed.as_mut_ptr(), size: boxed.len() };
        std::mem::forget(boxed);
        out
    }
}

/// # Safety
/// `bytes` came from this library and was not freed before.
#[no_mangle]
pub unsafe extern "C" fn tutti_bytes_free(bytes: Bytes) {
    if !bytes.data.is_null() {
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(bytes.data, bytes.size)));
    }
}

/// # Safety
/// `data` points to `size` bytes that outlive the call, or `size` is 0.
pub unsafe fn borrowed<'a>(data: *const u8, size: usize) -> &'a [u8] {
    if size == 0 { &[] } else { slice::from_raw_parts(data, size) }
}

/// As `borrowed`, of text: what is not UTF-8 is an error.
///
/// # Safety
/// As `borrowed`.
pub unsafe fn borrowed_text<'a>(data: *const u8, size: usize) -> Result<&'a str, String> {
    std::str::from_utf8(borrowed(data, size)).map_err(|e| format!("not UTF-8 at byte {}", e.valid_up_to()))
}

/// Runs `work`; its error, or the words of its panic, go to `error`.
///
/// # Safety
/// `error` points to a `Bytes` that holds nothing to be freed.
pub unsafe fn guarded<T>(error: *mut Bytes, work: impl FnOnce() -> Result<T, String>) -> Option<T> {
    let words = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(words)) => words,
        Err(panic) => panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()))
            .unwrap_or_else(|| "a panic without words".into()),
    };
    *error = Bytes::own(words.into_bytes());
    None
}

/// A handle for C++ to what `work` makes; null, with words in `error`, when it fails.
///
/// # Safety
/// As `guarded`.
pub unsafe fn opened<T>(error: *mut Bytes, work: impl FnOnce() -> Result<T, String>) -> *mut T {
    guarded(error, work).map_or(std::ptr::null_mut(), |made| Box::into_raw(Box::new(made)))
}

/// # Safety
/// `handle` is null, or came from `opened` and was not closed before.
pub unsafe fn closed<T>(handle: *mut T) {
    if !handle.is_null() {
        drop(Box::from_raw(handle));
    }
}

#[no_mangle]
pub extern "C" fn tutti_rust_present() -> bool {
    true
}
