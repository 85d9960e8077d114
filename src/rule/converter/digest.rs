//! Digests and message authentication codes: `sha1`, `sha2`, `digest`, `hmac` (HAProxy manual §7.3.1).

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, coding};
use crate::rule::args::{ArgKind, ArgSpec};

const BINARY: ConverterRow = ConverterRow { input: Type::Bin, output: Type::Bin, ..TEXT };

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow {
        names: &["sha1"],
        apply: |_, sample, txn| Some(Algorithm::Sha1.digest(bytes(sample)?, txn)),
        ..BINARY
    },
    ConverterRow {
        names: &["sha2"],
        args: &[ArgSpec::may(ArgKind::Int)],
        prepare: |args| {
            let algorithm = match args.first() {
                Some(Arg::Int(224)) => Algorithm::Sha224,
                Some(Arg::Int(256) | Arg::Absent) | None => Algorithm::Sha256,
                Some(Arg::Int(384)) => Algorithm::Sha384,
                Some(Arg::Int(512)) => Algorithm::Sha512,
                _ => {
                    let message = "there is no digest of that many bits";
                    return Err(ArgFault::new(0, message, "write 224, 256, 384 or 512"));
                }
            };
            Ok(vec![Arg::Digest(algorithm)])
        },
        apply: digest,
        ..BINARY
    },
    ConverterRow { names: &["digest"], args: &[ArgSpec::need(ArgKind::Text)], prepare: named, apply: digest, ..BINARY },
    ConverterRow {
        names: &["hmac"],
        args: &[ArgSpec::need(ArgKind::Text), ArgSpec::need(ArgKind::TextOrVar)],
        prepare: |args| {
            let mut args = named(args)?;
            if let Some(Arg::Text(text)) = args.get_mut(1) {
                let mut key = Vec::with_capacity(text.len());
                coding::from_base64(text, &mut key).ok_or_else(|| {
                    let help = "write the key in base64, padding included, or name a variable that holds it so";
                    ArgFault::new(1, "the key is not written in base64", help)
                })?;
                *text = key.into();
            }
            Ok(args)
        },
        apply: |args, sample, txn| {
            let Arg::Digest(algorithm) = args.at(0) else { return None };
            match args.at(1) {
                Arg::Text(key) => algorithm.code(key, bytes(sample)?, txn),
                Arg::Var(id) => {
                    let text = txn.var(*id)?.text(txn.arena)?;
                    let mut key = bumpalo::collections::Vec::with_capacity_in(text.len(), txn.arena);
                    coding::from_base64(text, &mut key)?;
                    algorithm.code(&key, bytes(sample)?, txn)
                }
                _ => None,
            }
        },
        ..BINARY
    },
];

/// A digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 1321.
    Md5,
    /// FIPS 180-4, as all that follow.
    Sha1,
    /// 224 bits.
    Sha224,
    /// 256 bits.
    Sha256,
    /// 384 bits.
    Sha384,
    /// 512 bits.
    Sha512,
    /// SHA-512 cut to 224 bits.
    Sha512To224,
    /// SHA-512 cut to 256 bits.
    Sha512To256,
}

/// Names in lower case.
const NAMES: &[(&str, Algorithm)] = &[
    ("md5", Algorithm::Md5),
    ("sha1", Algorithm::Sha1),
    ("sha-1", Algorithm::Sha1),
    ("sha224", Algorithm::Sha224),
    ("sha-224", Algorithm::Sha224),
    ("sha2-224", Algorithm::Sha224),
    ("sha256", Algorithm::Sha256),
    ("sha-256", Algorithm::Sha256),
    ("sha2-256", Algorithm::Sha256),
    ("sha384", Algorithm::Sha384),
    ("sha-384", Algorithm::Sha384),
    ("sha2-384", Algorithm::Sha384),
    ("sha512", Algorithm::Sha512),
    ("sha-512", Algorithm::Sha512),
    ("sha2-512", Algorithm::Sha512),
    ("sha512-224", Algorithm::Sha512To224),
    ("sha-512/224", Algorithm::Sha512To224),
    ("sha2-512/224", Algorithm::Sha512To224),
    ("sha512-256", Algorithm::Sha512To256),
    ("sha-512/256", Algorithm::Sha512To256),
    ("sha2-512/256", Algorithm::Sha512To256),
];

/// The first argument is the name of a digest.
fn named(mut args: Vec<Arg>) -> Result<Vec<Arg>, ArgFault> {
    let Some(arg) = args.first_mut() else { return Ok(args) };
    let Arg::Text(name) = arg else { return Ok(args) };
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let (_, algorithm) = NAMES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
        let help = "write md5, sha1, sha224, sha256, sha384, sha512, sha512-224 or sha512-256";
        ArgFault::new(0, format!("no digest is called `{name}` here"), help)
    })?;
    *arg = Arg::Digest(*algorithm);
    Ok(args)
}

fn digest<'s>(args: &'s Args, sample: Sample<'s>, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let Arg::Digest(algorithm) = args.at(0) else { return None };
    Some(algorithm.digest(bytes(sample)?, txn))
}

/// Calls `$function` with the type of the digest.
macro_rules! with_type {
    ($algorithm:expr, $function:ident($($arg:expr),*)) => {
        match $algorithm {
            Algorithm::Md5 => $function!(Md5, $($arg),*),
            Algorithm::Sha1 => $function!(Sha1, $($arg),*),
            Algorithm::Sha224 => $function!(Sha224, $($arg),*),
            Algorithm::Sha256 => $function!(Sha256, $($arg),*),
            Algorithm::Sha384 => $function!(Sha384, $($arg),*),
            Algorithm::Sha512 => $function!(Sha512, $($arg),*),
            Algorithm::Sha512To224 => $function!(Sha512_224, $($arg),*),
            Algorithm::Sha512To256 => $function!(Sha512_256, $($arg),*),
        }
    };
}

macro_rules! hashed {
    ($kind:ty, $text:expr, $txn:expr) => {
        Sample::Bin($txn.arena.alloc_slice_copy(&<$kind>::digest($text)))
    };
}

macro_rules! authenticated {
    ($kind:ty, $key:expr, $text:expr, $txn:expr) => {{
        let mut code = Hmac::<$kind>::new_from_slice($key).ok()?;
        code.update($text);
        Some(Sample::Bin($txn.arena.alloc_slice_copy(&code.finalize().into_bytes())))
    }};
}

impl Algorithm {
    fn digest<'s>(self, text: &[u8], txn: &'s Txn<'_>) -> Sample<'s> {
        with_type!(self, hashed(text, txn))
    }

    /// The code of a text under a key of any length (RFC 2104).
    fn code<'s>(self, key: &[u8], text: &[u8], txn: &'s Txn<'_>) -> Option<Sample<'s>> {
        with_type!(self, authenticated(key, text, txn))
    }
}
