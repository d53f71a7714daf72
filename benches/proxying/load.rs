//! Clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream as Blocking};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const REQUEST: &[u8] = b"GET /some/path?with=query HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\n\
    Accept: */*\r\nAccept-Language: en\r\nCookie: session=0123456789abcdef\r\n\r\n";
/// How long what a proxy does after the last request may take, before its memory counts.
const REST: Duration = Duration::from_secs(5);

/// What some clients have seen.
pub(crate) struct Load {
    /// Requests a second.
    pub(crate) rate: f64,
    /// The middle of the times that a request took, in microseconds.
    pub(crate) middle: f64,
    /// Their 99th percentile.
    pub(crate) high: f64,
    /// The processor time that a request took of a process, in microseconds.
    pub(crate) processor: f64,
}

/// Sends requests for some time: each client one after the other, on one connection.
pub(crate) fn drive(address: SocketAddr, clients: u32, time: Duration, process: Option<u32>) -> Load {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let used = |process| if let Some(process) = process { processor_time(process) } else { 0 };
    let (before, begin) = (used(process), Instant::now());
    let mut times = runtime.block_on(async {
        let clients: Vec<_> = (0..clients).map(|_| tokio::spawn(client(address, begin + time))).collect();
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.await.unwrap());
        }
        times
    });
    let (seconds, count) = (begin.elapsed().as_secs_f64(), times.len() as f64);
    let processor = (used(process) - before) as f64 / 1e3 / count;
    times.sort_unstable();
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e6;
    Load { rate: count / seconds, middle: rank(50), high: rank(99), processor }
}

async fn client(address: SocketAddr, end: Instant) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut times, mut buffer) = (Vec::new(), vec![0; 8 << 10]);
    loop {
        let begin = Instant::now();
        if begin > end {
            return times;
        }
        stream.write_all(REQUEST).await.unwrap();
        let mut filled = 0;
        while !is_whole(&buffer[..filled]) {
            let read = stream.read(&mut buffer[filled..]).await.unwrap();
            assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&buffer[..filled]));
            filled += read;
        }
        times.push(begin.elapsed());
    }
}

/// Whether an answer has arrived, which has to be a good one.
fn is_whole(answer: &[u8]) -> bool {
    let Some(head) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let text = std::str::from_utf8(&answer[..head]).unwrap().to_ascii_lowercase();
    assert!(text.starts_with("http/1.1 200 "), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    answer.len() == head + 4 + length.parse::<usize>().unwrap()
}

/// Connections that wait.
pub(crate) struct Idle(Vec<Blocking>);

/// Makes a request on each of many connections, keeps them, and waits until whoever has answered is at rest.
pub(crate) fn wait_idle(address: SocketAddr, count: u64) -> Idle {
    let connect = |_| {
        let mut stream = Blocking::connect(address).unwrap();
        ask(&mut stream);
        stream
    };
    let connections = (0..count).map(connect).collect();
    std::thread::sleep(REST);
    Idle(connections)
}

impl Idle {
    /// All of them are still good.
    pub(crate) fn ask_each_again(mut self) {
        self.0.iter_mut().for_each(ask);
    }
}

fn ask(stream: &mut Blocking) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.write_all(REQUEST).unwrap();
    let (mut buffer, mut filled) = ([0; 8 << 10], 0);
    while !is_whole(&buffer[..filled]) {
        let read = stream.read(&mut buffer[filled..]).unwrap();
        assert!(read > 0, "an idle connection was closed");
        filled += read;
    }
}

/// The nanoseconds that all threads of a process have run.
fn processor_time(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let files = threads.map(|thread| thread.unwrap().path().join("schedstat"));
    let of = |file| std::fs::read_to_string(file).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    files.map(of).sum()
}
