//! Pointers from C, checked: what is null, too small or crooked is refused, everything else becomes a slice or a
//! reference.
//!
//! Owns the one promise that cannot be checked: that memory which C names is there for as long as the header says.

use core::mem::{MaybeUninit, align_of, size_of};

/// The bytes at `data`; none where there are none. `None` for a null pointer with a length.
///
/// # Safety
/// `len` bytes at `data` must be readable, and unchanged while the result lives.
#[inline]
pub(crate) unsafe fn bytes<'a, T>(data: *const T, len: usize) -> Option<&'a [u8]> {
    if len == 0 {
        return Some(&[]);
    }
    if data.is_null() || len > isize::MAX as usize {
        return None;
    }
    // SAFETY: not null, not too long, and readable as the caller promises; bytes need no alignment.
    Some(unsafe { core::slice::from_raw_parts(data.cast(), len) })
}

/// The bytes at `data`, to be written.
///
/// # Safety
/// `len` bytes at `data` must be writable, and used by nothing else while the result lives.
#[inline]
pub(crate) unsafe fn buffer<'a, T>(data: *mut T, len: usize) -> Option<&'a mut [u8]> {
    if len == 0 {
        return Some(&mut []);
    }
    if data.is_null() || len > isize::MAX as usize {
        return None;
    }
    // SAFETY: as in `bytes`. The bytes may be uninitialised: encoders read only what they have written.
    Some(unsafe { core::slice::from_raw_parts_mut(data.cast(), len) })
}

/// The places of an array, to be written.
///
/// # Safety
/// `len` places at `data` must be writable, and used by nothing else while the result lives.
#[inline]
pub(crate) unsafe fn places<'a, T>(data: *mut T, len: usize) -> Option<&'a mut [MaybeUninit<T>]> {
    if len == 0 {
        return Some(&mut []);
    }
    if data.is_null() || !data.is_aligned() || len > isize::MAX as usize / size_of::<T>() {
        return None;
    }
    // SAFETY: not null, aligned, not too long, and writable as the caller promises; nothing is read.
    Some(unsafe { core::slice::from_raw_parts_mut(data.cast(), len) })
}

/// The items of an array.
///
/// # Safety
/// `len` items at `data` must be readable, and unchanged while the result lives.
#[inline]
pub(crate) unsafe fn items<'a, T>(data: *const T, len: usize) -> Option<&'a [T]> {
    if len == 0 {
        return Some(&[]);
    }
    if data.is_null() || !data.is_aligned() || len > isize::MAX as usize / size_of::<T>() {
        return None;
    }
    // SAFETY: not null, aligned, not too long, and initialised as the caller promises.
    Some(unsafe { core::slice::from_raw_parts(data, len) })
}

/// An object of the caller.
///
/// # Safety
/// `data` must be null or point to a `T` that was initialised and is used by nothing else while the result lives.
#[inline]
pub(crate) unsafe fn object<'a, T>(data: *mut T) -> Option<&'a mut T> {
    if data.is_null() || !data.is_aligned() {
        return None;
    }
    // SAFETY: not null, aligned, and initialised as the caller promises.
    Some(unsafe { &mut *data })
}

/// Writes an object to memory of `size` bytes, if it is there, large enough and aligned.
///
/// # Safety
/// `size` bytes at `data` must be writable, and used by nothing else.
pub(crate) unsafe fn init<T>(data: *mut T, size: usize, value: T) -> bool {
    if data.is_null() || size < size_of::<T>() || !(data as usize).is_multiple_of(align_of::<T>()) {
        return false;
    }
    // SAFETY: not null, aligned, and of the size that the value needs.
    unsafe { data.write(value) };
    true
}
