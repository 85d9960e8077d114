use std::{fs, path::Path};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    client::WebPkiServerVerifier,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

struct Made {
    certificate: String,
    key: String,
}

fn make(names: &[&str]) -> Made {
    let key = KeyPair::generate().unwrap();
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    Made {
        certificate: CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

fn write(path: &Path, pieces: &[&str]) {
    fs::write(path, pieces.concat()).unwrap();
}

fn bind(paths: &[&Path]) -> BindTls {
    BindTls {
        certificates: paths.iter().map(|path| path.to_path_buf()).collect(),
        alpn: vec!["h2".into(), "http/1.1".into()],
        strict_sni: false,
    }
}

fn load(tls: &BindTls) -> Result<TlsAcceptor, String> {
    TlsAcceptor::load(tls, &Place { file: "site.cfg".into(), line: 7 })
}

/// Shakes hands as a client that asks for `name`, offers `alpn` and trusts `trusted` for `verified`.
async fn handshake(
    acceptor: &TlsAcceptor,
    name: &'static str,
    alpn: &[&str],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> io::Result<(CertificateDer<'static>, Tls, bool)> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Anyone(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name).unwrap();
    let (here, there) = duplex(64 << 10);
    let client = async {
        let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, here).await?;
        assert_eq!(stream.read_u8().await?, b'!');
        let (_, session) = stream.get_ref();
        Ok::<_, io::Error>(session.peer_certificates().unwrap()[0].clone().into_owned())
    };
    let server = async {
        let (mut stream, tls, h2) = acceptor.accept(there).await?;
        stream.write_all(b"!").await?;
        stream.flush().await?;
        Ok::<_, io::Error>((tls, h2))
    };
    let (certificate, server) = tokio::join!(client, server);
    let (tls, h2) = server?;
    Ok((certificate?, tls, h2))
}

/// Takes any certificate: which one it is, the test looks at itself.
#[derive(Debug)]
struct Anyone(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

const BOTH: &[&rustls::SupportedProtocolVersion] = &[&TLS13, &TLS12];

struct Site {
    acceptor: TlsAcceptor,
    made: Vec<Made>,
    tls: BindTls,
    _folder: TempDir,
}

/// A directory with a certificate for two names, a wildcard, and one with its key beside it.
fn site() -> Site {
    let folder = TempDir::new().unwrap();
    let made = vec![make(&["a.example", "b.example"]), make(&["*.w.example"]), make(&["c.example"])];
    write(&folder.path().join("1.pem"), &[&made[0].key, &made[0].certificate]);
    write(&folder.path().join("2.pem"), &["# a comment\n", &made[1].certificate, &made[1].key]);
    write(&folder.path().join("3.crt"), &[&made[2].certificate]);
    write(&folder.path().join("3.key"), &[&made[2].key]);
    write(&folder.path().join(".hidden"), &["nothing"]);
    let tls = bind(&[folder.path()]);
    Site { acceptor: load(&tls).unwrap(), made, tls, _folder: folder }
}

impl Site {
    fn is(&self, shown: &CertificateDer<'_>) -> usize {
        let der = |made: &Made| CertificateDer::from_pem_slice(made.certificate.as_bytes()).unwrap();
        self.made.iter().position(|made| der(made) == *shown).unwrap()
    }
}

#[tokio::test]
async fn the_server_name_chooses_the_certificate() {
    let site = site();
    let table = [
        ("a.example", 0),
        ("B.Example", 0),
        ("c.example", 2),
        ("x.w.example", 1),
        ("w.example", 0),
        ("x.y.w.example", 0),
        ("unknown.example", 0),
        ("127.0.0.1", 0),
    ];
    for versions in [BOTH, &[&TLS12]] {
        for (name, expected) in table {
            let (shown, tls, _) = handshake(&site.acceptor, name, &[], versions).await.unwrap();
            assert_eq!(site.is(&shown), expected, "{name}");
            let sni = (name != "127.0.0.1").then(|| name.to_ascii_lowercase().into());
            assert_eq!(tls.sni, sni);
        }
    }
}

#[tokio::test]
async fn strict_sni_ends_the_handshake_for_an_unknown_name() {
    let mut site = site();
    site.tls.strict_sni = true;
    let acceptor = load(&site.tls).unwrap();
    assert!(handshake(&acceptor, "a.example", &[], BOTH).await.is_ok());
    for name in ["unknown.example", "127.0.0.1"] {
        assert!(handshake(&acceptor, name, &[], BOTH).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn alpn_decides_the_protocol() {
    let site = site();
    let table: [(&[&str], bool); 4] =
        [(&[], false), (&["http/1.1"], false), (&["http/1.1", "h2"], true), (&["h2"], true)];
    for (offered, h2) in table {
        assert_eq!(handshake(&site.acceptor, "a.example", offered, BOTH).await.unwrap().2, h2, "{offered:?}");
    }
    assert!(handshake(&site.acceptor, "a.example", &["h3"], BOTH).await.is_err());
}

#[test]
fn a_bad_file_is_named_with_what_is_wrong() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("bad.pem");
    let (one, other) = (make(&["a.example"]), make(&["a.example"]));
    let cut = |text: &str| text.lines().take(4).collect::<Vec<_>>().join("\n");
    let garbled = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    let table: &[(&[&str], &str)] = &[
        (&[""], "bad.pem: this file is empty"),
        (&["hello\n"], "bad.pem: no certificate and no private key in this file"),
        (&[&one.certificate], "bad.pem: no private key in this file, and neither "),
        (&[&one.key], "bad.pem: no certificate in this file"),
        (&[&other.key, &one.certificate], "bad.pem: the private key does not belong to the first certificate of "),
        (&["# one\n", garbled, &one.key], "bad.pem:2: a damaged certificate"),
        (&["\n\n", &cut(&one.certificate)], "bad.pem:3: a damaged PEM block"),
        (&["-----BEGIN ENCRYPTED PRIVATE KEY-----\n"], "bad.pem:1: an encrypted private key"),
    ];
    for (pieces, expected) in table {
        write(&file, pieces);
        let error = load(&bind(&[&file])).unwrap_err();
        assert!(error.starts_with("site.cfg:7: ") && error.contains(expected), "{error}");
    }
    write(&folder.path().join("bad.pem.key"), &["hello"]);
    write(&file, &[&one.certificate]);
    assert!(load(&bind(&[&file])).unwrap_err().contains("bad.pem.key: no certificate and no private key"));
    let missing = folder.path().join("missing.pem");
    assert!(load(&bind(&[&missing])).unwrap_err().contains("missing.pem: no such file"));
    let empty = TempDir::new().unwrap();
    assert!(load(&bind(&[empty.path()])).unwrap_err().contains("a directory without certificates"));
    assert!(load(&bind(&[])).unwrap_err().contains("crt FILE"));
}

/// The stock verifier of rustls agrees with the names read from the certificate.
#[tokio::test]
async fn a_verifying_client_is_content_and_resumes() {
    let site = site();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(site.made[1].certificate.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(BOTH)
        .unwrap()
        .with_webpki_verifier(verifier)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let (here, there) = duplex(64 << 10);
        let server = async {
            let (mut stream, ..) = site.acceptor.accept(there).await.unwrap();
            stream.write_all(b"!").await.unwrap();
            stream.flush().await.unwrap();
            stream.get_ref().1.handshake_kind().unwrap()
        };
        let client = async {
            let mut stream = connector.connect(ServerName::try_from("x.w.example").unwrap(), here).await.unwrap();
            stream.read_u8().await.unwrap();
        };
        kinds.push(tokio::join!(server, client).0);
    }
    assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
}
