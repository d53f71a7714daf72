//! Customers of the shop: they ask without a pause, over kept-alive and over new connections, and forgive nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::root_cause;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two requests of a visitor, so that the machine has time for others too.
const PAUSE: Duration = Duration::from_millis(10);
/// How many answers of each kind a chapter must have seen to tell anything; it lasts for seconds.
const FEWEST: u64 = 20;

/// What a service of the shop tells of itself at `/version`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct About {
    pub(super) version: String,
    pub(super) pod: String,
    pub(super) process: u32,
}

/// What visitors have met.
#[derive(Clone, Debug, Default)]
pub(super) struct Visits {
    /// Requests over connections that were kept.
    pub(super) kept: u64,
    /// Requests over connections of their own.
    pub(super) new: u64,
    /// The processes that answered in each pod of a stage.
    pub(super) pods: BTreeMap<String, BTreeSet<u32>>,
    /// The versions of the code that answered.
    pub(super) versions: BTreeSet<String>,
    /// What failed.
    pub(super) failures: Vec<String>,
}

impl Visits {
    /// The evidence that nothing failed, or what did. Where hardly anybody asked, there is none.
    pub(super) fn unbroken(&self) -> Result<String, String> {
        let Self { kept, new, failures, .. } = self;
        let all = kept + new + failures.len() as u64;
        let asked = format!("{all} requests, {kept} over kept connections and {new} over new ones");
        match failures.first() {
            Some(first) => Err(format!("{} of {all} requests failed, the first with: {first}", failures.len())),
            None if *kept.min(new) < FEWEST => Err(format!("{asked}: too few to tell")),
            None => Ok(format!("{asked}: 0 failed")),
        }
    }
}

/// Visitors at work.
#[derive(Debug)]
pub(super) struct Visitors {
    visits: Arc<Mutex<Visits>>,
    answered: Arc<AtomicU64>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Visitors {
    /// Two visitors for each of the addresses, which come with the name of their stage.
    pub(super) fn arrive(addresses: &[(&'static str, SocketAddr)]) -> Self {
        let visitors = Self {
            visits: Arc::default(),
            answered: Arc::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        for (stage, address) in addresses {
            for keeps in [true, false] {
                let (visits, answered) = (visitors.visits.clone(), visitors.answered.clone());
                let visitor = Visitor { stage, address: *address, keeps, visits, answered, connection: None };
                visitors.tasks.spawn(visitor.work(visitors.stop.clone()));
            }
        }
        visitors
    }

    /// How many requests were answered so far.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Lets them finish, and tells what they met.
    pub(super) async fn leave(self) -> Visits {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        lock(&self.visits).clone()
    }
}

impl Drop for Visitors {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Visitor {
    stage: &'static str,
    address: SocketAddr,
    keeps: bool,
    visits: Arc<Mutex<Visits>>,
    answered: Arc<AtomicU64>,
    connection: Option<Connection>,
}

impl Visitor {
    async fn work(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let met = tokio::time::timeout(PATIENCE, self.visit()).await;
            self.record(met.unwrap_or_else(|_| Err(format!("no answer for {} s", PATIENCE.as_secs()))));
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn visit(&mut self) -> Result<About, String> {
        let kept = self.connection.take().filter(|connection| self.keeps && !connection.is_closed());
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let (body, closes) = connection.get("/version").await?;
        if !closes {
            self.connection = Some(connection);
        }
        serde_json::from_slice(&body).map_err(|error| format!("an answer that is none: {error}"))
    }

    fn record(&self, met: Result<About, String>) {
        let mut visits = lock(&self.visits);
        match met {
            Ok(about) => {
                *(if self.keeps { &mut visits.kept } else { &mut visits.new }) += 1;
                visits.pods.entry(format!("{}/{}", self.stage, about.pod)).or_default().insert(about.process);
                visits.versions.insert(about.version);
                self.answered.fetch_add(1, Ordering::Relaxed);
            }
            Err(failure) => visits.failures.push(failure),
        }
    }
}

/// One connection, without anything that tries again.
struct Connection {
    address: SocketAddr,
    sender: SendRequest<Empty<Bytes>>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| format!("{address}: {error}"))?;
        let opened = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|error| format!("{address}: {error}"))?;
        // The sender hears how the connection ends.
        tokio::spawn(async { drop(connection.await) });
        Ok(Self { address, sender })
    }

    fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// The body of a good answer, and whether the server closes the connection after it.
    async fn get(&mut self, path: &str) -> Result<(Bytes, bool), String> {
        let address = self.address;
        let failed = |error: hyper::Error| format!("GET http://{address}{path}: {}", root_cause(&error));
        let request = Request::get(path).header(HOST, address.to_string()).body(Empty::new());
        let request = request.map_err(|error| error.to_string())?;
        self.sender.ready().await.map_err(failed)?;
        let response = self.sender.send_request(request).await.map_err(failed)?;
        let closes = response.headers().get(CONNECTION).is_some_and(|value| value.as_bytes() == b"close");
        let status = response.status();
        let body = response.into_body().collect().await.map_err(failed)?.to_bytes();
        if status == StatusCode::OK { Ok((body, closes)) } else { Err(format!("GET http://{address}{path}: {status}")) }
    }
}

/// One request over a connection of its own; `url` is `http://<address>:<port>/<path>`.
pub(super) async fn get(url: &str) -> Result<Bytes, String> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = address.parse().map_err(|error| format!("{url}: {error}"))?;
    let asked = async { Connection::open(address).await?.get(&format!("/{path}")).await };
    let answered = tokio::time::timeout(PATIENCE, asked).await;
    answered.map_err(|_elapsed| format!("{url} does not answer"))?.map(|(body, _)| body)
}

fn lock(visits: &Mutex<Visits>) -> std::sync::MutexGuard<'_, Visits> {
    visits.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_failure_among_hardly_any_requests_is_no_evidence() {
        let visits = |kept, new| Visits { kept, new, ..Visits::default() };
        for (kept, new) in [(0, 0), (1_000, 0), (0, 1_000), (FEWEST - 1, 1_000)] {
            assert!(visits(kept, new).unbroken().is_err_and(|why| why.contains("too few")), "{kept} and {new}");
        }
        assert!(visits(FEWEST, FEWEST).unbroken().is_ok());
        let one_failed = Visits { failures: vec!["refused".into()], ..visits(1_000, 1_000) };
        assert!(one_failed.unbroken().is_err_and(|why| why.contains("1 of 2001")));
    }
}
