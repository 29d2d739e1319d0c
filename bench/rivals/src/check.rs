//! What was written, undone.

use libdeflate_sys::{libdeflate_alloc_decompressor, libdeflate_free_decompressor, libdeflate_gzip_decompress};

/// The body of a coded form, whose length is known; none if it is broken.
pub fn decode(coding: &str, coded: &[u8], length: usize) -> Option<Vec<u8>> {
    match coding {
        "gzip" => gzip(coded, length),
        "zstd" => zstd(coded, length),
        _ => crate::brotli::decode(coded, length),
    }
}

fn gzip(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length + 1];
    let mut bytes = 0;
    // SAFETY: the decompressor is made and freed here; pointers and lengths are those of a slice and a vector.
    let rc = unsafe {
        let decompressor = libdeflate_alloc_decompressor();
        if decompressor.is_null() {
            return None;
        }
        let (from, to) = (coded.as_ptr().cast(), body.as_mut_ptr().cast());
        let rc = libdeflate_gzip_decompress(decompressor, from, coded.len(), to, body.len(), &mut bytes);
        libdeflate_free_decompressor(decompressor);
        rc
    };
    body.truncate(bytes);
    (rc == 0).then_some(body)
}

fn zstd(coded: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length + 1];
    // SAFETY: pointers and lengths are those of a slice and a vector.
    let bytes = unsafe { zstd_sys::ZSTD_decompress(body.as_mut_ptr().cast(), body.len(), coded.as_ptr().cast(), coded.len()) };
    body.truncate(bytes);
    (bytes <= length).then_some(body)
}
