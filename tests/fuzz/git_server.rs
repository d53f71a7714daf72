//! A Git server that says whatever it is told to.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use launchway::source::{Remote, RemoteUrl, TimeLimits, default_branch, remote_head, remote_tags};

/// Stands between the advertisement and the answer to `ls-refs`.
const THEN: &[u8] = b"=====\n";

/// Answers one request after the other.
pub(crate) struct GitServer {
    address: SocketAddr,
    answers: Arc<Mutex<[Vec<u8>; 2]>>,
}

impl GitServer {
    /// One that says nothing yet.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, answers) = (listener.local_addr().unwrap(), Arc::<Mutex<[Vec<u8>; 2]>>::default());
        let told = answers.clone();
        thread::spawn(move || {
            for client in listener.incoming() {
                // A client that has heard enough goes.
                client.and_then(|client| answer(client, &told)).unwrap_or_default();
            }
        });
        Self { address, answers }
    }

    /// What is understood of a server that says this.
    pub(crate) fn tells(&self, input: &[u8]) -> String {
        let then = input.windows(THEN.len()).position(|part| part == THEN);
        let answers = match then {
            Some(at) => [input[..at].to_vec(), input[at + THEN.len()..].to_vec()],
            None => [input.to_vec(), Vec::new()],
        };
        *self.answers.lock().unwrap() = answers;
        let url = RemoteUrl::parse(&format!("http://{}/shop.git", self.address), false).unwrap();
        let patience = Duration::from_secs(5);
        let time = TimeLimits { connect: patience, idle: patience, list: patience, transfer: patience };
        let remote = Remote { time, ..Remote::new(url, "main") };
        let branch = default_branch(&remote);
        if let Ok(branch) = &branch {
            assert!(!branch.is_empty() && !branch.contains(char::is_control), "the branch {branch:?}");
        }
        let told = |problem: launchway::error::Failure| problem.one_line().replace(&self.address.to_string(), "");
        let tags = remote_tags(&remote).map(|tags| tags.len());
        format!("{:?} {:?} {:?}", remote_head(&remote).map_err(told), branch.map_err(told), tags.map_err(told))
    }
}

fn answer(mut client: TcpStream, answers: &Mutex<[Vec<u8>; 2]>) -> std::io::Result<()> {
    client.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        request += &line;
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    let asks = request.starts_with("POST");
    let content = answers.lock().unwrap()[usize::from(asks)].clone();
    let kind = if asks { "result" } else { "advertisement" };
    write!(
        client,
        "HTTP/1.1 200 OK\r\ncontent-type: application/x-git-upload-pack-{kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        content.len()
    )?;
    client.write_all(&content)
}
