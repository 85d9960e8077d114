//! JSON web tokens (RFC 7519): `jwt_header_query`, `jwt_payload_query`, `jwt_verify`.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::{
    hmac,
    signature::{self, UnparsedPublicKey, VerificationAlgorithm},
};

use super::{Arg, ArgFault, Args, ConverterRow, Sample, TEXT, Txn, Type, bytes, coding::from_base64_url, query};
use crate::rule::args::{ArgKind, ArgSpec};

const QUERY: ConverterRow = ConverterRow {
    args: &[ArgSpec::may(ArgKind::Text), ArgSpec::may(ArgKind::Word(&["int"]))],
    input: Type::Bin,
    output: Type::Any,
    prepare: |args| match args.first() {
        Some(Arg::Text(path)) if path.is_empty() => Ok(vec![]),
        _ => query::prepare(args),
    },
    ..TEXT
};

pub(super) const ROWS: &[ConverterRow] = &[
    ConverterRow { names: &["jwt_header_query"], apply: |args, sample, txn| part(args, sample, 0, txn), ..QUERY },
    ConverterRow { names: &["jwt_payload_query"], apply: |args, sample, txn| part(args, sample, 1, txn), ..QUERY },
    ConverterRow {
        names: &["jwt_verify"],
        args: &[ArgSpec::need(ArgKind::TextOrVar), ArgSpec::need(ArgKind::Key)],
        input: Type::Bin,
        output: Type::Int,
        prepare,
        apply: |args, sample, txn| {
            let algorithm = match args.at(0) {
                Arg::Text(name) => name,
                Arg::Var(id) => txn.var(*id)?.text(txn.arena)?,
                _ => return None,
            };
            let key = match args.at(1) {
                Arg::Key(key) => Key { secret: &key.text, public: key.file.as_deref() },
                Arg::Var(id) => Key { secret: txn.var(*id)?.text(txn.arena)?, public: None },
                _ => return None,
            };
            Some(Sample::Int(verdict(algorithm, &key, bytes(sample)?, txn)))
        },
    },
];

/// The decoded part of the token, or what the path leads to in it.
fn part<'s>(args: &'s Args, sample: Sample<'s>, index: usize, txn: &'s Txn<'_>) -> Option<Sample<'s>> {
    let encoded = bytes(sample)?.split(|byte| *byte == b'.').nth(index)?;
    let json = from_base64_url(encoded, txn)?;
    match args.at(0) {
        Arg::Absent => Some(Sample::Str(json)),
        _ => query::find(args, json, txn),
    }
}

/// The signature does not fit.
const REFUSED: i64 = 0;
/// It does.
const FITS: i64 = 1;
/// RFC 7518 has no such algorithm.
const UNKNOWN_ALGORITHM: i64 = -1;
/// It has one that is not built.
const UNBUILT_ALGORITHM: i64 = -2;
/// Not three parts, or a signature that is not base64url.
const NO_TOKEN: i64 = -3;
/// No public key has been read for it.
const UNKNOWN_KEY: i64 = -5;

struct Key<'k> {
    secret: &'k [u8],
    /// In the form that the algorithm's standard gives it.
    public: Option<&'k [u8]>,
}

/// How a signature is made.
#[derive(Clone, Copy)]
enum Scheme {
    Unsigned,
    Secret(hmac::Algorithm),
    Public(&'static dyn VerificationAlgorithm),
    Unbuilt,
}

impl Scheme {
    /// RFC 7518 §3.1.
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"none" => Self::Unsigned,
            b"HS256" => Self::Secret(hmac::HMAC_SHA256),
            b"HS384" => Self::Secret(hmac::HMAC_SHA384),
            b"HS512" => Self::Secret(hmac::HMAC_SHA512),
            b"RS256" => Self::Public(&signature::RSA_PKCS1_2048_8192_SHA256),
            b"RS384" => Self::Public(&signature::RSA_PKCS1_2048_8192_SHA384),
            b"RS512" => Self::Public(&signature::RSA_PKCS1_2048_8192_SHA512),
            b"PS256" => Self::Public(&signature::RSA_PSS_2048_8192_SHA256),
            b"PS384" => Self::Public(&signature::RSA_PSS_2048_8192_SHA384),
            b"PS512" => Self::Public(&signature::RSA_PSS_2048_8192_SHA512),
            b"ES256" => Self::Public(&signature::ECDSA_P256_SHA256_FIXED),
            b"ES384" => Self::Public(&signature::ECDSA_P384_SHA384_FIXED),
            b"ES512" => Self::Unbuilt,
            _ => return None,
        })
    }
}

fn verdict(algorithm: &[u8], key: &Key<'_>, token: &[u8], txn: &Txn<'_>) -> i64 {
    let Some(scheme) = Scheme::named(algorithm) else { return UNKNOWN_ALGORITHM };
    let mut dots = memchr::memchr_iter(b'.', token);
    let (Some(first), Some(second), None) = (dots.next(), dots.next(), dots.next()) else { return NO_TOKEN };
    let (signed, encoded) = token.split_at_checked(second).unwrap_or((token, b""));
    if first == 0 || first + 1 == second {
        return NO_TOKEN;
    }
    let encoded = encoded.get(1..).unwrap_or_default();
    let fits = match scheme {
        Scheme::Unsigned => encoded.is_empty(),
        Scheme::Unbuilt => return UNBUILT_ALGORITHM,
        Scheme::Secret(algorithm) => {
            let Some(signature) = signature(encoded, txn) else { return NO_TOKEN };
            // Where the file of a public key is named, its name is no secret.
            key.public.is_none() && hmac::verify(&hmac::Key::new(algorithm, key.secret), signed, signature).is_ok()
        }
        Scheme::Public(algorithm) => {
            let Some(signature) = signature(encoded, txn) else { return NO_TOKEN };
            let Some(public) = key.public else { return UNKNOWN_KEY };
            UnparsedPublicKey::new(algorithm, public).verify(signed, signature).is_ok()
        }
    };
    if fits { FITS } else { REFUSED }
}

/// The decoded signature; `None` when it is not base64url or empty.
fn signature<'s>(encoded: &[u8], txn: &'s Txn<'_>) -> Option<&'s [u8]> {
    from_base64_url(encoded, txn).filter(|signature| !signature.is_empty())
}

fn prepare(mut args: Vec<Arg>) -> Result<Vec<Arg>, ArgFault> {
    let scheme = match args.first() {
        Some(Arg::Text(name)) => Some(Scheme::named(name).ok_or_else(|| {
            let message = format!("no signature algorithm is called `{}`", String::from_utf8_lossy(name));
            let help = "write none, HS256, RS256, PS256, ES256 or their 384 and 512 forms, or a variable";
            ArgFault::new(0, message, help)
        })?),
        _ => None,
    };
    if let Some(Scheme::Unbuilt) = scheme {
        let message = "signatures over the curve P-521 cannot be verified";
        return Err(ArgFault::new(0, message, "use ES256 or ES384"));
    }
    let Some(Arg::Key(key)) = args.get_mut(1) else { return Ok(args) };
    let public = key.file.as_deref().and_then(public_key);
    let needed = matches!(scheme, Some(Scheme::Public(_)));
    if needed && public.is_none() {
        let path = String::from_utf8_lossy(&key.text);
        let message = match key.file {
            None => format!("the file `{path}` cannot be read"),
            Some(_) => format!("`{path}` holds no public key"),
        };
        let help = "name a PEM file with a `PUBLIC KEY`; `openssl x509 -pubkey -noout` takes it from a certificate";
        return Err(ArgFault::new(1, message, help));
    }
    // A constant secret may look like a path.
    key.file = if matches!(scheme, Some(Scheme::Secret(_))) { None } else { public };
    Ok(args)
}

/// The key in a PEM file (RFC 7468 §13).
fn public_key(pem: &[u8]) -> Option<std::sync::Arc<[u8]>> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (body, _) = rest.split_once("-----END PUBLIC KEY-----")?;
    let body: String = body.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let der = STANDARD.decode(body).ok()?;
    // SubjectPublicKeyInfo (RFC 5280 §4.1): a sequence of an algorithm and a bit string, which holds the key.
    let (info, _) = element(&der, 0x30)?;
    let (_, rest) = element(info, 0x30)?;
    let (bits, _) = element(rest, 0x03)?;
    bits.strip_prefix(&[0]).map(Into::into)
}

/// The inside of the element of this tag that the text begins with, and what follows it (X.690 §8.1).
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match der.strip_prefix(&[tag])? {
        [short @ 0..=0x7f, rest @ ..] => (usize::from(*short), rest),
        [0x81, length, rest @ ..] => (usize::from(*length), rest),
        [0x82, high, low, rest @ ..] => (usize::from(*high) << 8 | usize::from(*low), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}
