//! An HTTP/2 client over TLS.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, runtime::Runtime, task::JoinSet, time::timeout};
use tokio_rustls::TlsConnector;

use super::deadline::LIMIT;

/// One HTTP/2 connection to the gateway.
pub struct Http2 {
    runtime: Runtime,
    sender: SendRequest<Bytes>,
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status and fields.
    pub head: http::response::Parts,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of the field `name`.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Whether it was served from the cache.
    pub fn is_hit(&self) -> bool {
        self.field("cache-status").is_some_and(|value| value.contains("; hit"))
    }
}

impl Http2 {
    /// Connects; `config` must offer `h2`.
    pub fn connect(address: SocketAddr, sni: &str, config: &Arc<ClientConfig>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        let sender = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let stream = TlsConnector::from(Arc::clone(config)).connect(name, stream).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let (sender, connection) = h2::client::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            sender
        });
        Self { runtime, sender }
    }

    /// GET of `https://host/path`.
    pub fn get(&mut self, url: &str) -> Answer {
        self.all(vec![request("GET", url)]).remove(0).unwrap()
    }

    /// One exchange with a body.
    ///
    /// # Errors
    /// When the stream fails.
    pub fn exchange(&mut self, request: Request<()>, body: &[u8]) -> Result<Answer, h2::Error> {
        let (mut sender, body) = (self.sender.clone(), Bytes::copy_from_slice(body));
        self.runtime
            .block_on(async { timeout(LIMIT, one(&mut sender, request, body)).await.expect("an answer in time") })
    }

    /// All of these at once, each on its own stream; the answers in the order of the requests.
    pub fn all(&mut self, requests: Vec<Request<()>>) -> Vec<Result<Answer, h2::Error>> {
        let sender = self.sender.clone();
        self.runtime.block_on(async move {
            let mut tasks = JoinSet::new();
            for (number, request) in requests.into_iter().enumerate() {
                let mut sender = sender.clone();
                tasks.spawn(async move { (number, one(&mut sender, request, Bytes::new()).await) });
            }
            let mut answers = timeout(LIMIT, tasks.join_all()).await.expect("answers in time");
            answers.sort_by_key(|(number, _)| *number);
            answers.into_iter().map(|(_, answer)| answer).collect()
        })
    }

    /// Opens a stream, waits for its head and resets it.
    pub fn abandon(&mut self, url: &str) {
        let mut sender = self.sender.clone();
        let request = request("GET", url);
        self.runtime.block_on(async move {
            sender = sender.ready().await.unwrap();
            let (response, mut stream) = sender.send_request(request, true).unwrap();
            let head = timeout(LIMIT, response).await.expect("a head in time").unwrap();
            stream.send_reset(h2::Reason::CANCEL);
            drop(head);
            // The connection's task writes it.
            tokio::task::yield_now().await;
        });
    }
}

/// A request without a body.
pub fn request(method: &str, url: &str) -> Request<()> {
    Request::builder().method(method).uri(url).version(http::Version::HTTP_2).body(()).unwrap()
}

async fn one(sender: &mut SendRequest<Bytes>, request: Request<()>, body: Bytes) -> Result<Answer, h2::Error> {
    let mut sender = sender.clone().ready().await?;
    let (response, mut stream) = sender.send_request(request, body.is_empty())?;
    if !body.is_empty() {
        stream.send_data(body, true)?;
    }
    let (head, mut incoming) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = incoming.data().await {
        let data = data?;
        incoming.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(Answer { head, body })
}
