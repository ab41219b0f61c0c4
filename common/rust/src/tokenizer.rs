//! Tokenizers of `tokenizer.json` files.

use crate::border::{borrowed, borrowed_text, closed, guarded, opened, Bytes};
use std::slice;
use tokenizers::Tokenizer;

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_open(
    json: *const u8,
    size: usize,
    error: *mut Bytes,
) -> *mut Tokenizer {
    opened(error, || {
        let mut tokenizer = Tokenizer::from_bytes(borrowed(json, size)).map_err(|e| e.to_string())?;
        // Whoever counts counts all, and nothing that was not there.
        tokenizer.with_truncation(None).map_err(|e| e.to_string())?;
        tokenizer.with_padding(None);
        Ok(tokenizer)
    })
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_close(tokenizer: *mut Tokenizer) {
    closed(tokenizer);
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_count(
    tokenizer: *const Tokenizer,
    text: *const u8,
    size: usize,
    error: *mut Bytes,
) -> i64 {
    let counted = guarded(error, || {
        let text = borrowed_text(text, size)?;
        let encoding = (*tokenizer).encode_fast(text, false).map_err(|e| e.to_string())?;
        Ok(encoding.len() as i64)
    });
    counted.unwrap_or(-1)
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: *const u8,
    size: usize,
    ids: *mut Bytes,
    error: *mut Bytes,
) -> bool {
    let encoded = guarded(error, || {
        let text = borrowed_text(text, size)?;
        let encoding = (*tokenizer).encode_fast(text, false).map_err(|e| e.to_string())?;
        *ids = Bytes::own(encoding.get_ids().iter().flat_map(|id| id.to_ne_bytes()).collect());
        Ok(())
    });
    encoded.is_some()
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_decode(
    tokenizer: *const Tokenizer,
    ids: *const u32,
    count: usize,
    text: *mut Bytes,
    error: *mut Bytes,
) -> bool {
    let decoded = guarded(error, || {
        let ids = if count == 0 { &[] } else { slice::from_raw_parts(ids, count) };
        let out = (*tokenizer).decode(ids, false).map_err(|e| e.to_string())?;
        *text = Bytes::own(out.into_bytes());
        Ok(())
    });
    decoded.is_some()
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_vocab_size(
    tokenizer: *const Tokenizer,
    with_added: bool,
) -> usize {
    (*tokenizer).get_vocab_size(with_added)
}

/// # Safety
/// See abi.h.
#[no_mangle]
pub unsafe extern "C" fn tutti_tokenizer_id(
    tokenizer: *const Tokenizer,
    token: *const u8,
    size: usize,
) -> i64 {
    borrowed_text(token, size)
        .ok()
        .and_then(|token| (*tokenizer).token_to_id(token))
        .map_or(-1, i64::from)
}
