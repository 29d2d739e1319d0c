//! Decoders of forms that refer to a dictionary, by zstd's library.

use anyhow::{Context, Result, anyhow};

/// More bytes than a body has that is decoded here.
const MOST_BYTES: usize = 8 << 20;

/// Undoes `dcz` (RFC 9842 section 5).
pub fn dcz(form: &[u8], dictionary: &[u8]) -> Result<Vec<u8>> {
    let frame = form.strip_prefix(&terse_dictionary::MAGIC).and_then(|rest| rest.get(32..)).context("no head of dcz")?;
    let fault = |code| anyhow!("zstd: {}", zstd_safe::get_error_name(code));
    let mut context = zstd_safe::DCtx::create();
    context.ref_prefix(dictionary).map_err(fault)?;
    let mut body = vec![0; MOST_BYTES];
    let bytes = context.decompress(&mut body[..], frame).map_err(fault)?;
    body.truncate(bytes);
    Ok(body)
}
