//! Who asks the service all the time, on connections of their own.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many ask at once, and how long each rests in between: some 200 requests a second.
const CUSTOMERS: usize = 4;
const REST: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);

/// When somebody was answered, and by which version.
pub(crate) type Answer = (Instant, String);

/// Asks for as long as something is done: all answers in the order in which they came, and how many were none.
pub(crate) fn ask(address: SocketAddr, done: impl FnOnce()) -> (Vec<Answer>, usize) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let customers: Vec<_> = (0..CUSTOMERS).map(|_| scope.spawn(|| customer(address, &over))).collect();
        done();
        over.store(true, Ordering::SeqCst);
        let seen = customers.into_iter().flat_map(|customer| customer.join().unwrap());
        let (good, bad): (Vec<_>, Vec<_>) = seen.partition(|(_, version)| version.is_some());
        let mut answers: Vec<Answer> = good.into_iter().filter_map(|(at, version)| Some((at, version?))).collect();
        answers.sort();
        (answers, bad.len())
    })
}

fn customer(address: SocketAddr, over: &AtomicBool) -> Vec<(Instant, Option<String>)> {
    let mut seen = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let version = once(address);
        seen.push((Instant::now(), version));
        std::thread::sleep(REST);
    }
    seen
}

/// What the service says that it is, if that is a whole and good answer.
pub(crate) fn once(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    (head.starts_with("HTTP/1.1 200") && !body.is_empty()).then(|| body.to_owned())
}
