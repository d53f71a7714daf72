//! SSH by the `ssh` program, so that a user's keys, agent, certificates and host aliases work as they are used to.

use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::stream::{Stream, spawn, wait};
use super::{Deadline, Protocol, Service};
use crate::error::{Context as _, Failure, Result};
use crate::source::Remote;
use crate::source::credentials::SECRET_VARIABLES;
use crate::source::url::Address;

/// What is kept of the program's complaints: enough for a server's greeting and the reason after it.
const MAX_COMPLAINT_BYTES: usize = 8 * 1024;
/// How long a program that closed its output may take to exit.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

/// The running program. It ends, with everything that it started, when this is dropped.
#[derive(Debug)]
pub(super) struct SshChild {
    running: Option<Running>,
    group: Option<Pid>,
    complaint: Arc<Mutex<Vec<u8>>>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// Ends when the program's error output does.
    collecting: JoinHandle<()>,
}

impl Drop for SshChild {
    fn drop(&mut self) {
        if let (Some(group), Some(_unreaped)) = (self.group, &self.running) {
            // It may be gone already.
            let _outcome = kill_process_group(group, Signal::KILL);
        }
    }
}

impl SshChild {
    /// Why it ended, if it ended badly. Waits a moment for it to end.
    pub(super) fn explain(&mut self, peer: &str) -> Option<Failure> {
        let mut running = self.running.take()?;
        let (status, running) = wait(EXIT_LIMIT * 2, async move {
            let status = tokio::time::timeout(EXIT_LIMIT, running.end()).await;
            Ok((status.ok().flatten(), running))
        })
        .ok()?;
        if status.is_none() {
            self.running = Some(running);
        }
        let complaint = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let complaint = String::from_utf8_lossy(&complaint);
        match status {
            Some(status) if status.success() && complaint.trim().is_empty() => None,
            _ => Some(explain(peer, &complaint)),
        }
    }
}

impl Running {
    /// Waits until it has ended and all that it said is collected.
    async fn end(&mut self) -> Option<ExitStatus> {
        let status = self.child.wait().await.ok();
        drop((&mut self.collecting).await);
        status
    }
}

pub(super) fn open(remote: &Remote, service: Service, protocol: Protocol, deadline: Deadline) -> Result<Stream> {
    let arguments = arguments(remote, service, protocol)?;
    let mut command = Command::new(&remote.ssh_program);
    command.args(arguments).env("SSH_ASKPASS_REQUIRE", "never").env("LC_ALL", "C").env_remove("GIT_PROTOCOL");
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    if protocol == Protocol::V2 {
        command.env("GIT_PROTOCOL", "version=2");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let program = remote.ssh_program.display().to_string();
    let mut child = wait(deadline.step(), async move { command.spawn() })
        .or_stalled(|| format!("cannot run the program `{program}`"))
        .map_err(|failure| failure.hint("install OpenSSH's client, or use an https:// address"))?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(Failure::transient(format!("the program `{program}` has no input or output")));
    };
    let complaint = Arc::default();
    let collecting = collect(stderr, Arc::clone(&complaint))?;
    let child = SshChild { running: Some(Running { child, collecting }), group, complaint };
    let peer = format!("`{}`", remote.url);
    Ok(Stream::new(Box::new(stdout), Some(Box::new(stdin)), deadline, peer).with_ssh(child))
}

/// Keeps the last bytes of what the program complains about, and lets it complain without end.
fn collect(mut stderr: impl AsyncRead + Send + Unpin + 'static, kept: Arc<Mutex<Vec<u8>>>) -> Result<JoinHandle<()>> {
    spawn(async move {
        let mut chunk = [0; 1024];
        while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(chunk.get(..length).unwrap_or_default());
            let excess = kept.len().saturating_sub(MAX_COMPLAINT_BYTES);
            kept.drain(..excess);
        }
    })
    .or_transient(|| "cannot read the output of `ssh`".to_owned())
}

/// The program's arguments. Host keys must be known before; nothing is asked of a person.
fn arguments(remote: &Remote, service: Service, protocol: Protocol) -> Result<Vec<String>> {
    let Address::Ssh { user, host, port, path } = remote.url.address() else {
        return Err(Failure::stalled(format!("`{}` is not an SSH address", remote.url)));
    };
    let mut options = vec![
        "BatchMode=yes".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "ServerAliveInterval=15".to_owned(),
        format!("ConnectTimeout={}", remote.time.connect.as_secs().max(1)),
    ];
    let credentials = &remote.credentials;
    if let Some(file) = &credentials.known_hosts_file {
        options.push(format!("UserKnownHostsFile={}", quoted_path(file)));
        options.push("GlobalKnownHostsFile=/dev/null".to_owned());
    }
    if let Some(file) = &credentials.ssh_key_file {
        options.push("IdentitiesOnly=yes".to_owned());
        options.push(format!("IdentityFile={}", quoted_path(file)));
    }
    if protocol == Protocol::V2 {
        options.push("SendEnv=GIT_PROTOCOL".to_owned());
    }
    let mut arguments: Vec<String> = ["-T", "-a", "-x"].map(str::to_owned).into();
    arguments.extend(options.into_iter().flat_map(|option| ["-o".to_owned(), option]));
    arguments.extend(port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
    arguments.extend(user.iter().flat_map(|user| ["-l".to_owned(), user.clone()]));
    arguments.extend(["--".to_owned(), host.clone(), format!("{} {}", service.name(), shell_quoted(path))]);
    Ok(arguments)
}

/// A path inside an option of `ssh`, where blanks separate and `%` expands.
fn quoted_path(path: &std::path::Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('%', "%%"))
}

/// A word for the shell on the other side.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''").replace('!', r"'\!'"))
}

/// What the program's last words mean. Only their texts tell OpenSSH, git-shell and the forges apart.
fn explain(peer: &str, complaint: &str) -> Failure {
    let has = |texts: &[&str]| texts.iter().any(|text| complaint.to_ascii_lowercase().contains(text));
    let failure = if has(&["host key verification failed", "host identification has changed"]) {
        Failure::stalled(format!("the host key of {peer} is not known, or has changed"))
            .hint("compare it with what the host publishes, then add it to the known hosts file (`ssh-keyscan`)")
    } else if has(&["permission denied", "not authorized", "access denied or", "authentication failures", "publickey"])
    {
        Failure::stalled(format!("{peer} refuses this SSH key"))
            .hint("set `credentials.sshKeyFile` to a key that may read the repository (and write, for notes)")
    } else if has(&["not found", "does not exist", "does not appear to be a git repository", "no such"]) {
        Failure::stalled(format!("{peer} does not exist there, or is not visible with this key"))
            .hint("check the repository's address and who may read it")
    } else {
        Failure::transient(format!("the SSH connection to {peer} failed"))
    };
    match last_lines(complaint) {
        Some(lines) => failure.because(lines),
        None => failure,
    }
}

/// The last lines that say something, in one.
fn last_lines(complaint: &str) -> Option<String> {
    let lines: Vec<&str> = complaint.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(3)..)?;
    let text: String = last.join("; ").chars().filter(|character| !character.is_control()).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::error::Class;
    use crate::source::RemoteUrl;

    fn remote(url: &str) -> Remote {
        Remote::new(RemoteUrl::parse(url, false).expect(url), "main")
    }

    #[test]
    fn the_program_is_told_to_trust_only_what_is_known() {
        let mut remote = remote("ssh://git@git.example:2222/acme/it's.git");
        remote.credentials.known_hosts_file = Some(PathBuf::from("/etc/known hosts"));
        remote.credentials.ssh_key_file = Some(PathBuf::from("/etc/key"));
        let arguments = arguments(&remote, Service::UploadPack, Protocol::V2).expect("arguments");
        for option in [
            "BatchMode=yes",
            "StrictHostKeyChecking=yes",
            "UserKnownHostsFile=\"/etc/known hosts\"",
            "IdentityFile=\"/etc/key\"",
            "SendEnv=GIT_PROTOCOL",
        ] {
            assert!(arguments.iter().any(|argument| argument == option), "{option} in {arguments:?}");
        }
        let tail = &arguments[arguments.len() - 7..];
        let command = r"git-upload-pack '/acme/it'\''s.git'";
        assert_eq!(tail, ["-p", "2222", "-l", "git", "--", "git.example", command]);
    }

    #[test]
    fn complaints_are_told_apart() {
        for (complaint, class, words) in [
            ("Host key verification failed.", Class::Stalled, "host key"),
            ("git@h: Permission denied (publickey).", Class::Stalled, "refuses"),
            ("Gitea: Repository not found\nfatal: Could not read from remote", Class::Stalled, "does not exist"),
            ("fatal: '/x' does not appear to be a git repository", Class::Stalled, "does not exist"),
            ("ssh: connect to host h port 22: Connection refused", Class::Transient, "refused"),
            ("ssh: Could not resolve hostname h: Temporary failure", Class::Transient, "resolve"),
            ("", Class::Transient, "failed"),
        ] {
            let failure = explain("`ssh://h/x`", complaint);
            assert_eq!(failure.class(), class, "{complaint}");
            assert!(failure.one_line().contains(words), "{}", failure.one_line());
        }
    }
}
