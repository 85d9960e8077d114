//! Certificates for the tests' names, and clients that trust them.

use std::{path::Path, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, IsCa, KeyPair};
use rustls::{ClientConfig, RootCertStore};

/// A certification authority of one test.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Writes a certificate for `names` and its key to `path`.
    pub fn write(&self, path: &Path, names: &[&str]) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        // A certificate named as its issuer looks self-signed.
        params.distinguished_name = DistinguishedName::new();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(path, format!("{}{}", certificate.pem(), key.serialize_pem())).unwrap();
    }

    /// Writes the authority's own certificate, for clients that read it from a file.
    pub fn write_root(&self, path: &Path) {
        std::fs::write(path, self.issuer.pem()).unwrap();
    }

    /// A client that trusts this authority and offers these protocols.
    pub fn client(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
