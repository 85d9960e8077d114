//! Certificate files: PEM, the chain and its key in one file or the key in a file beside it.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use rustls::{
    InconsistentKeys,
    crypto::ring::sign::any_supported_type,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{PemObject, SectionKind},
    },
    sign::CertifiedKey,
};

use crate::{gateway::file, lang::in_words};

/// Files that HAProxy puts beside certificates; a directory's other files are certificates.
const COMPANIONS: &[&str] = &["key", "issuer", "ocsp", "sctl"];

/// One certificate with what it is for.
#[derive(Debug)]
pub(super) struct Certificate {
    /// The chain and its key.
    pub(super) key: CertifiedKey,
    /// Its dNSNames in lower case; a wildcard as `*.example`.
    pub(super) names: Vec<String>,
}

/// The files `path` stands for: itself, or a directory's files in the order of their names.
///
/// # Errors
/// When it cannot be read, or is a directory without certificates.
pub(super) fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error: io::Error| named(path, in_words(&error));
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let hidden = file.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        let companion = file.extension().is_some_and(|end| COMPANIONS.iter().any(|known| end == *known));
        if !hidden && !companion && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() { Err(named(path, "a directory without certificates")) } else { Ok(files) }
}

/// Reads the certificate in `file`.
///
/// # Errors
/// Names the file, and the line where there is one.
pub(super) fn load(file: &Path) -> Result<Certificate, String> {
    let mut chain = Vec::new();
    let mut key = None;
    for block in blocks(file)? {
        match block {
            Block::Certificate(certificate) => chain.push(certificate),
            Block::Key(found) => key = key.or(Some((found, file.to_owned()))),
        }
    }
    let Some(leaf) = chain.first() else { return Err(named(file, "no certificate in this file")) };
    let names = names(leaf).map_err(|error| named(file, error))?;
    let (key, key_file) = match key {
        Some(found) => found,
        None => key_beside(file)?,
    };
    let key =
        any_supported_type(&key).map_err(|_| named(&key_file, "a private key of a kind that is not supported"))?;
    let key = CertifiedKey::new(chain, key);
    match key.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(Certificate { key, names }),
        Err(rustls::Error::InconsistentKeys(_)) => Err(named(
            &key_file,
            format_args!("the private key does not belong to the first certificate of {}", file.display()),
        )),
        Err(error) => Err(named(file, error)),
    }
}

/// The key of a file without one: `FILE.key`, or FILE with its ending replaced by `key`.
fn key_beside(file: &Path) -> Result<(PrivateKeyDer<'static>, PathBuf), String> {
    let mut appended = file.as_os_str().to_owned();
    appended.push(".key");
    let candidates = [PathBuf::from(appended), file.with_extension("key")];
    let Some(beside) = candidates.iter().find(|candidate| candidate.is_file()) else {
        let [appended, replaced] = candidates.map(|candidate| candidate.display().to_string());
        return Err(named(
            file,
            format_args!("no private key in this file, and neither {appended} nor {replaced} exists"),
        ));
    };
    let key = blocks(beside)?.into_iter().find_map(|block| match block {
        Block::Key(key) => Some(key),
        Block::Certificate(_) => None,
    });
    key.map(|key| (key, beside.clone())).ok_or_else(|| named(beside, "no private key in this file"))
}

enum Block {
    Certificate(CertificateDer<'static>),
    Key(PrivateKeyDer<'static>),
}

/// The certificates and keys of a PEM file; blocks of other kinds (parameters, text) are passed over.
fn blocks(path: &Path) -> Result<Vec<Block>, String> {
    let text = file::read(path).map_err(|error| named(path, in_words(&error)))?;
    let mut blocks = Vec::new();
    let mut rest = text.as_slice();
    let mut line = 0_usize;
    while let Some((first, after)) = next_line(rest) {
        line += 1;
        if let Some(label) = label(first) {
            let at = |reason: &str| format!("{}:{line}: {reason}", path.display());
            if label == b"ENCRYPTED PRIVATE KEY" {
                return Err(at("an encrypted private key: it must be decrypted first"));
            }
            if label == b"CERTIFICATE" || label.ends_with(b"PRIVATE KEY") {
                let (kind, der) =
                    <(SectionKind, Vec<u8>)>::from_pem_slice(rest).map_err(|_| at("a damaged PEM block"))?;
                match PrivateKeyDer::from_pem(kind, der.clone()) {
                    Some(key) => blocks.push(Block::Key(key)),
                    None if label == b"CERTIFICATE" => {
                        let certificate = CertificateDer::from(der);
                        webpki::EndEntityCert::try_from(&certificate).map_err(|_| at("a damaged certificate"))?;
                        blocks.push(Block::Certificate(certificate));
                    }
                    None => return Err(at("a damaged PEM block")),
                }
            }
        }
        rest = after;
    }
    if blocks.is_empty() {
        let reason = if text.trim_ascii().is_empty() {
            "this file is empty"
        } else {
            "no certificate and no private key in this file"
        };
        return Err(named(path, reason));
    }
    Ok(blocks)
}

fn next_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let end = memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1);
    text.split_at_checked(end)
}

/// The label of a line that begins a block (RFC 7468 §3).
fn label(line: &[u8]) -> Option<&[u8]> {
    line.trim_ascii().strip_prefix(b"-----BEGIN ")?.strip_suffix(b"-----")
}

/// The subject's alternative names; its common name has not counted since RFC 9110 §4.3.4 and RFC 9525.
fn names(leaf: &CertificateDer<'_>) -> Result<Vec<String>, String> {
    let parsed = webpki::EndEntityCert::try_from(leaf).map_err(|error| error.to_string())?;
    Ok(parsed.valid_dns_names().map(str::to_ascii_lowercase).collect())
}

fn named(path: &Path, reason: impl fmt::Display) -> String {
    format!("{}: {reason}", path.display())
}
