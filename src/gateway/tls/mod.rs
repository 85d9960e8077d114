//! TLS towards clients: rustls on our own accept loop, a certificate chosen by server name.

mod pem;

use std::{fmt, io, path::Path, sync::Arc};

use ahash::AHashMap;
use rustls::{
    CipherSuite, HandshakeKind, ProtocolVersion, ServerConfig,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;

use crate::{
    config::{BindTls, Place},
    rule::Tls,
};

/// The TLS side of one bind, with its certificates. A clone is a handle to the same.
#[derive(Clone)]
pub struct TlsAcceptor {
    acceptor: tokio_rustls::TlsAcceptor,
    certificates: Arc<Certificates>,
}

impl TlsAcceptor {
    /// Reads the certificates that `tls` names. A reload loads anew.
    ///
    /// # Errors
    /// One line: `place` of the bind, then the file, its line where there is one, and what is wrong.
    pub fn load(tls: &BindTls, place: &Place) -> Result<Self, String> {
        let with_place = |reason: String| format!("{place}: {reason}");
        let certificates = Arc::new(Certificates::load(tls).map_err(with_place)?);
        let broken = |error: rustls::Error| with_place(error.to_string());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(broken)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificates) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = tls.alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        config.ticketer = ring::Ticketer::new().map_err(broken)?;
        Ok(Self { acceptor: Arc::new(config).into(), certificates })
    }

    /// Shakes hands. Returns the stream, what rules may know of the session, and whether HTTP/2 was
    /// agreed on (RFC 7301). The caller sets the deadline.
    ///
    /// # Errors
    /// The client is gone, or it speaks no TLS that we do.
    pub async fn accept<S>(&self, stream: S) -> io::Result<(TlsStream<S>, Tls, bool)>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        let stream = self.acceptor.accept(stream).await?;
        let (_, session) = stream.get_ref();
        let sni = session.server_name().map(|name| name.to_ascii_lowercase().into());
        let (cipher, key_bits) = session.negotiated_cipher_suite().map_or(("", 0), |suite| cipher(suite.suite()));
        let protocol = match session.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "",
        };
        let alpn =
            session.alpn_protocol().and_then(|agreed| PROTOCOLS.into_iter().find(|one| one.as_bytes() == agreed));
        let resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        let h2 = alpn == Some("h2");
        Ok((stream, Tls { sni, alpn, protocol, cipher, key_bits, resumed }, h2))
    }
}

/// What a bind can offer by ALPN.
const PROTOCOLS: [&str; 3] = ["h2", "http/1.1", "http/1.0"];

/// A cipher suite's name in OpenSSL, which is what rules compare with, and the length of its key in bits.
fn cipher(suite: CipherSuite) -> (&'static str, u16) {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => ("TLS_AES_128_GCM_SHA256", 128),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => ("TLS_AES_256_GCM_SHA384", 256),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => ("TLS_CHACHA20_POLY1305_SHA256", 256),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-ECDSA-AES128-GCM-SHA256", 128),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-ECDSA-AES256-GCM-SHA384", 256),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-ECDSA-CHACHA20-POLY1305", 256),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ("ECDHE-RSA-AES128-GCM-SHA256", 128),
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ("ECDHE-RSA-AES256-GCM-SHA384", 256),
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => ("ECDHE-RSA-CHACHA20-POLY1305", 256),
        _ => ("", 0),
    }
}

/// What is wrong with the certificates that `path` stands for (a file, or a directory of them): a line each that
/// begins with the file. Empty: they can be used.
pub fn faults(path: &Path) -> Vec<String> {
    match pem::files(path) {
        Ok(files) => files.iter().filter_map(|file| pem::load(file).err()).collect(),
        Err(fault) => vec![fault],
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsAcceptor").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// Certificates by name. A name may have several, of different kinds of key.
#[derive(Debug)]
struct Certificates {
    keys: Vec<Arc<CertifiedKey>>,
    exact: AHashMap<String, Vec<usize>>,
    /// By what follows `*.`.
    wildcard: AHashMap<String, Vec<usize>>,
    /// What is shown for any other name, and for none.
    fallback: Vec<usize>,
}

impl Certificates {
    fn load(tls: &BindTls) -> Result<Self, String> {
        let mut found =
            Self { keys: Vec::new(), exact: AHashMap::new(), wildcard: AHashMap::new(), fallback: Vec::new() };
        for path in &tls.certificates {
            for file in pem::files(path)? {
                let certificate = pem::load(&file)?;
                let index = found.keys.len();
                found.keys.push(Arc::new(certificate.key));
                for name in certificate.names {
                    let (names, name) = match name.strip_prefix("*.") {
                        Some(rest) => (&mut found.wildcard, rest.to_owned()),
                        None => (&mut found.exact, name),
                    };
                    let indices = names.entry(name).or_default();
                    if !indices.contains(&index) {
                        indices.push(index);
                    }
                }
            }
        }
        if found.keys.is_empty() {
            return Err("`ssl` needs a certificate: add `crt FILE`".to_owned());
        }
        if !tls.strict_sni {
            found.fallback.push(0);
        }
        Ok(found)
    }

    /// The certificates for a name: its own, else those of the wildcard that stands for its first
    /// label (RFC 9525 §6.3), else the default one.
    fn choose(&self, name: Option<&str>) -> &[usize] {
        let named = name.and_then(|name| {
            let wildcard = || self.wildcard.get(name.split_once('.')?.1);
            self.exact.get(name).or_else(wildcard)
        });
        named.unwrap_or(&self.fallback)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let chosen = self.choose(name.as_deref());
        let mut keys = chosen.iter().filter_map(|&index| self.keys.get(index));
        let fitting = keys.clone().find(|key| key.key.choose_scheme(hello.signature_schemes()).is_some());
        fitting.or_else(|| keys.next()).cloned()
    }
}

#[cfg(test)]
mod tests;
