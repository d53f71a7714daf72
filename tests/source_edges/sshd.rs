//! SSH against a real OpenSSH server. Run with `cargo test --test source -- --ignored` where one is installed
//! (`apt-get install openssh-server`; another place than `/usr/sbin/sshd` is named by `LAUNCHWAY_TEST_SSHD`).

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use launchway::error::Class;
use launchway::model::ids::CommitId;
use launchway::model::time::Timestamp;
use launchway::source::{NoteLine, Remote, RemoteUrl, Signature, remote_head};

use super::transport::{look_and_fetch, mirror, wait_until};
use crate::support::git::GitFixture;

/// A server with a key that may write and one that may only read.
struct Sshd {
    child: Child,
    port: u16,
}

impl Sshd {
    fn start(fixture: &GitFixture) -> Self {
        for key in ["host", "other-host", "writer", "reader", "stranger"] {
            keygen(fixture, key);
        }
        let port = free_port();
        let authorized =
            [authorized(fixture, "writer", "*"), authorized(fixture, "reader", "git-upload-pack*")].concat();
        fs::write(fixture.path("authorized_keys"), authorized).expect("written");
        for (file, key) in [("known_hosts", "host"), ("wrong_hosts", "other-host"), ("no_hosts", "")] {
            let line =
                if key.is_empty() { String::new() } else { format!("[127.0.0.1]:{port} {}", public(fixture, key)) };
            fs::write(fixture.path(file), line).expect("written");
        }
        fs::write(fixture.path("sshd_config"), config(fixture, port)).expect("written");
        // The server wants this folder when it runs as root.
        drop(fs::create_dir_all("/run/sshd"));
        let program = std::env::var_os("LAUNCHWAY_TEST_SSHD").unwrap_or_else(|| "/usr/sbin/sshd".into());
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f"]).arg(fixture.path("sshd_config"));
        command.stderr(fs::File::create(fixture.path("sshd.log")).expect("a log"));
        let child = command.stdin(Stdio::null()).spawn().expect("an SSH server");
        let mut sshd = Self { child, port };
        wait_until(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        assert!(sshd.child.try_wait().expect("a state").is_none(), "the server stays");
        sshd
    }

    fn remote(&self, fixture: &GitFixture, key: &str, known_hosts: &str) -> Remote {
        let user = String::from_utf8(Command::new("id").arg("-un").output().expect("id").stdout).expect("a name");
        let url = format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, fixture.bare().display());
        let mut remote = Remote::new(RemoteUrl::parse(&url, false).expect("a url"), "main");
        remote.credentials.ssh_key_file = Some(fixture.path(key));
        remote.credentials.known_hosts_file = Some(fixture.path(known_hosts));
        remote.ssh_program = fixture.path("ssh");
        // The configuration of whoever runs the tests plays no part.
        fixture.write_program(&remote.ssh_program, "#!/bin/sh\nexec ssh -F none \"$@\"\n");
        remote
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn keygen(fixture: &GitFixture, name: &str) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(fixture.path(name));
    assert!(command.status().expect("ssh-keygen").success());
}

fn public(fixture: &GitFixture, name: &str) -> String {
    fs::read_to_string(fixture.path(&format!("{name}.pub"))).expect("a key")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn authorized(fixture: &GitFixture, name: &str, commands: &str) -> String {
    let script: PathBuf = fixture.path(&format!("{name}.sh"));
    let environment: String =
        fixture.environment().iter().map(|(name, value)| format!("export {name}='{value}'\n")).collect();
    let refusal = "echo 'this key is not authorized to write' >&2; exit 1";
    let choice = format!("case \"$SSH_ORIGINAL_COMMAND\" in {commands}) ;; *) {refusal};; esac");
    let run = "exec git-shell -c \"$SSH_ORIGINAL_COMMAND\"";
    fixture.write_program(&script, &format!("#!/bin/sh\n{environment}{choice}\n{run}\n"));
    format!("restrict,command=\"{}\" {}", script.display(), public(fixture, name))
}

fn config(fixture: &GitFixture, port: u16) -> String {
    let root = fixture.root().display();
    format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nAuthorizedKeysFile {root}/authorized_keys\n\
         PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
         AcceptEnv GIT_PROTOCOL\n"
    )
}

#[test]
#[ignore = "needs an OpenSSH server"]
fn a_real_server_is_read_written_and_checked() {
    let fixture = GitFixture::new();
    let sshd = Sshd::start(&fixture);
    let writer = sshd.remote(&fixture, "writer", "known_hosts");
    look_and_fetch(&fixture, &writer);

    let head = remote_head(&writer).expect("a look").expect("a branch");
    let line = |state: &str| NoteLine {
        commit: CommitId::new(head.as_str()),
        context: "launchway/plan".to_owned(),
        line: format!("{state} launchway/plan told"),
    };
    let author = Signature { name: "launchway".to_owned(), email: "launchway@localhost".to_owned(), at: Timestamp(0) };
    let mirror = mirror(&fixture);
    mirror.write_notes(&writer, &[line("running")], &author).expect("written");

    let reader = sshd.remote(&fixture, "reader", "known_hosts");
    assert_eq!(remote_head(&reader).expect("a look"), Some(head.clone()));
    let refused = mirror.write_notes(&reader, &[line("success")], &author).expect_err("read only");
    assert_eq!(refused.class(), Class::Stalled, "{}", refused.one_line());
    assert!(refused.one_line().contains("not authorized to write"), "{}", refused.one_line());

    for (key, hosts, words) in [
        ("stranger", "known_hosts", "refuses this SSH key"),
        ("writer", "wrong_hosts", "host key"),
        ("writer", "no_hosts", "host key"),
    ] {
        let failure = remote_head(&sshd.remote(&fixture, key, hosts)).expect_err(words);
        assert_eq!(failure.class(), Class::Stalled, "{}", failure.one_line());
        assert!(failure.one_line().contains(words), "{}", failure.one_line());
    }
    let mut missing = sshd.remote(&fixture, "writer", "known_hosts");
    let url = missing.url.to_string().replace("origin.git", "missing.git");
    missing.url = RemoteUrl::parse(&url, false).expect("a url");
    let failure = remote_head(&missing).expect_err("missing").one_line();
    assert!(failure.contains("does not exist"), "{failure}");
}
