//! HTTP/1: every request goes to a pod of its own, so that clients keep their connections while pods come and go.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::backends::PATIENCE;
use super::client::{Client, Watch};
use super::expect::{self, ClientBody};
use super::headers;
use super::interim;
use super::keep_alive;
use super::patience;
use super::pod::Lease;
use super::relay::relay;
use super::upstream::{RequestBody, Sender, Upstreams};
use super::{Session, Stay};
use crate::error::root_cause;

/// The most that the head of a message may hold, in bytes; what is on its way is bounded by it as well, on either side.
pub(super) const MAX_HEAD: usize = 64 << 10;
/// How often a request that may be repeated is sent at most. A request that kills whoever reads it must not go round.
const MAX_SENT: usize = 3;

pub(super) type ResponseBody = Either<Relayed, Full<Bytes>>;

/// Serves a client until it or the service ends.
pub(super) async fn serve(session: Session, client: TcpStream) {
    let authority = client.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let ending = session.stay.ending.clone();
    let watch = Arc::<Watch>::default();
    let client_side = Arc::new(ClientSide { session, authority, watch: watch.clone() });
    let requests = service_fn(move |request| {
        let client_side = client_side.clone();
        async move { Ok(client_side.answer(request).await) }
    });
    keep_alive::serve(client, watch, requests, ending).await;
}

/// What is known of the client's connection.
struct ClientSide {
    session: Session,
    authority: String,
    watch: Arc<Watch>,
}

/// Why an attempt failed.
enum Failed {
    /// Nothing reached a pod.
    Unsent(io::Error),
    /// Something may have.
    Sent(hyper::Error),
}

impl ClientSide {
    async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        if request.method() == Method::CONNECT {
            return text(StatusCode::METHOD_NOT_ALLOWED, "a service is no proxy to other places");
        }
        if headers::has_several_hosts(request.headers()) {
            return text(StatusCode::BAD_REQUEST, "the request names more than one host");
        }
        if headers::other_codings(request.headers()).is_some() {
            return text(StatusCode::NOT_IMPLEMENTED, "of transfer codings, `chunked` alone is known here");
        }
        self.watch.interim.begin().await;
        let response = self.forward(request).await.unwrap_or_else(|refusal| refusal);
        self.watch.end_interim();
        response
    }

    async fn forward(&self, mut request: Request<Incoming>) -> Result<Response<ResponseBody>, Response<ResponseBody>> {
        let version = request.version();
        let upgrade = headers::is_upgrade(version, request.headers()).then(|| hyper::upgrade::on(&mut request));
        let (mut head, body) = request.into_parts();
        headers::prepare_request(&mut head, &self.authority);
        let hears_interim = (version >= Version::HTTP_11).then_some(&self.watch);
        let mut message = Message::new(Request::from_parts(head, body), upgrade.is_some(), hears_interim);
        let deadline = Instant::now() + PATIENCE;
        let (mut tried, mut sent, mut last) = (Vec::new(), 0, None);
        loop {
            let Some(lease) = self.session.shared.backends.lease(self.session.port, &mut tried, deadline).await else {
                return Err(self.nobody_answers(last));
            };
            match self.attempt(&mut message, &lease).await {
                Ok((response, sender)) => {
                    return match refusal(&response, version, upgrade.is_some()) {
                        Some(refusal) => Err(text(StatusCode::BAD_GATEWAY, refusal)),
                        None => Ok(self.relay(response, sender, lease, upgrade)),
                    };
                }
                Err(Failed::Unsent(error)) => last = Some(error),
                // The pod has seen a part of it, and does not answer that.
                Err(Failed::Sent(error)) if error.is_user() => {
                    return Err(text(
                        StatusCode::BAD_REQUEST,
                        &format!("the body of the request is broken: {}", root_cause(&error)),
                    ));
                }
                Err(Failed::Sent(error)) => {
                    sent += 1;
                    if !message.is_repeatable() || sent == MAX_SENT {
                        return Err(text(
                            StatusCode::BAD_GATEWAY,
                            &format!("the pod broke off: {}", root_cause(&error)),
                        ));
                    }
                }
            }
            tried.push(lease.destination.clone());
        }
    }

    /// Sends the message once. A request that cannot be repeated gets a new connection: an idle one may be closed by
    /// the pod at this very moment.
    async fn attempt(&self, message: &mut Message, lease: &Lease) -> Result<(Response<Incoming>, Sender), Failed> {
        let idle = message.is_repeatable().then(|| self.session.worker.upstreams.take(&lease.destination)).flatten();
        let mut sender = match idle {
            Some(sender) => sender,
            None => Upstreams::connect(&lease.destination).await.map_err(Failed::Unsent)?,
        };
        let request = message.take().ok_or_else(|| Failed::Unsent(io::ErrorKind::BrokenPipe.into()))?;
        match sender.try_send_request(request).await {
            Ok(response) => Ok((response, sender)),
            Err(mut refused) => Err(match refused.take_message() {
                Some(request) => {
                    message.put_back(request);
                    Failed::Unsent(io::Error::other(refused.into_error()))
                }
                None => Failed::Sent(refused.into_error()),
            }),
        }
    }

    fn relay(
        &self,
        mut response: Response<Incoming>,
        sender: Sender,
        lease: Lease,
        client: Option<OnUpgrade>,
    ) -> Response<ResponseBody> {
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        headers::prepare_response(&mut response);
        if let (true, Some(client)) = (switches, client) {
            let stay = self.session.stay.clone();
            let cut_off = stay.cut_off.clone();
            let tunnel = tunnel(client, hyper::upgrade::on(&mut response), lease, stay);
            self.session.worker.carry(async move { cut_off.run_until_cancelled(tunnel).await.unwrap_or_default() });
            return response.map(|_| Either::Right(Full::default()));
        }
        let upstreams = self.session.worker.upstreams.clone();
        response.map(|body| Either::Left(Relayed::new(body, Exchange { sender, lease, upstreams })))
    }

    fn nobody_answers(&self, last: Option<io::Error>) -> Response<ResponseBody> {
        let service = self.session.shared.backends.service();
        let mut response = match last {
            Some(error) => {
                text(StatusCode::BAD_GATEWAY, &format!("no pod of service `{service}` could be reached: {error}"))
            }
            None => text(StatusCode::SERVICE_UNAVAILABLE, &format!("no pod of service `{service}` is ready")),
        };
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

/// Why a response cannot be passed on, if it cannot.
fn refusal(response: &Response<Incoming>, version: Version, upgrade: bool) -> Option<&'static str> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS && !upgrade {
        return Some("the pod has changed to another protocol, which nobody asked for");
    }
    let is_coded = version < Version::HTTP_11 && headers::other_codings(response.headers()).is_some();
    is_coded.then_some("the pod uses a transfer coding that HTTP/1.0 does not know")
}

/// A request on its way, for as many attempts as it allows.
enum Message {
    /// Has no body and may be sent again.
    Repeatable(Parts),
    /// Can be sent once; empty while it is being sent.
    Once(Option<Request<RequestBody>>),
}

impl Message {
    /// A request, whose interim responses are passed on to a client that knows what they are.
    fn new(mut request: Request<Incoming>, upgrade: bool, hears_interim: Option<&Arc<Watch>>) -> Self {
        let expected = expect::expected(request.headers());
        if let Some(watch) = hears_interim {
            interim::pass_on(&mut request, watch, expected.clone());
        }
        let is_bare = request.body().is_end_stream() && headers::is_idempotent(request.method());
        if is_bare && !upgrade {
            return Self::Repeatable(request.into_parts().0);
        }
        Self::Once(Some(request.map(|body| Either::Left(ClientBody::new(body, expected)))))
    }

    fn is_repeatable(&self) -> bool {
        matches!(self, Self::Repeatable(_))
    }

    fn take(&mut self) -> Option<Request<RequestBody>> {
        match self {
            Self::Repeatable(head) => Some(Request::from_parts(head.clone(), Either::Right(Empty::new()))),
            Self::Once(request) => request.take(),
        }
    }

    fn put_back(&mut self, request: Request<RequestBody>) {
        if let Self::Once(place) = self {
            *place = Some(request);
        }
    }
}

/// Passes bytes both ways after both sides have agreed on another protocol.
async fn tunnel(client: OnUpgrade, pod: OnUpgrade, _lease: Lease, stay: Stay) {
    let (Ok(client), Ok(pod)) = futures::future::join(client, pod).await else { return };
    // hyper has only what it was given.
    let Ok(client) = client.downcast::<Client>() else { return };
    let ((client, ahead), mut pod) = (client.io.into_parts(client.read_buf), TokioIo::new(pod));
    let begun = patience::limit(&client, patience::FOR_A_STREAM).is_ok() && pod.write_all(&ahead).await.is_ok();
    if begun {
        // Whoever breaks off, both sides see the end.
        relay(client, pod, stay).await.ok();
    }
}

/// A request in flight: its connection, and the pod's promise not to end.
struct Exchange {
    sender: Sender,
    lease: Lease,
    upstreams: Arc<Upstreams>,
}

/// A response's body on its way to the client. The exchange ends with it; the connection is kept if it is complete.
pub(super) struct Relayed {
    body: Incoming,
    exchange: Option<Exchange>,
}

impl Relayed {
    fn new(body: Incoming, exchange: Exchange) -> Self {
        let mut relayed = Self { body, exchange: Some(exchange) };
        if relayed.body.is_end_stream() {
            relayed.complete();
        }
        relayed
    }

    fn complete(&mut self) {
        if let Some(Exchange { sender, lease, upstreams }) = self.exchange.take() {
            upstreams.keep(sender, &lease);
        }
    }
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Err(_)) => self.exchange = None,
            Some(Ok(_)) if !self.body.is_end_stream() => {}
            Some(Ok(_)) | None => self.complete(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn text(status: StatusCode, message: &str) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(Full::from(format!("{message}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
