//! SSH by the `ssh` program, so that a user's keys, agent, certificates and host aliases work as they are used to.

use tokio::process::Command;

use super::program::{Program, last_lines};
use super::stream::Stream;
use super::{Deadline, Protocol, Service};
use crate::error::{Class, Failure, Result};
use crate::source::Remote;
use crate::source::credentials::SECRET_VARIABLES;
use crate::source::url::UrlParts;

/// The code with which the program itself fails; any other is that of what ran on the other side.
const OWN_FAILURE: i32 = 255;
/// The code with which Git fails: of a full disk as of a repository that is not there.
const GIT_FAILURE: i32 = 128;

pub(super) fn open(remote: &Remote, service: Service, protocol: Protocol, deadline: Deadline) -> Result<Stream> {
    let mut command = Command::new(&remote.ssh_program);
    command.args(arguments(remote, service, protocol)?);
    command.env("SSH_ASKPASS_REQUIRE", "never").env("LC_ALL", "C").env_remove("GIT_PROTOCOL");
    for name in SECRET_VARIABLES {
        command.env_remove(name);
    }
    if protocol == Protocol::V2 {
        command.env("GIT_PROTOCOL", "version=2");
    }
    let explain = match service {
        Service::UploadPack => explain_reading,
        Service::ReceivePack => explain_writing,
    };
    let missing = "install OpenSSH's client, or use an https:// address";
    Program::start(command, deadline, format!("`{}`", remote.url), explain, missing)
}

/// The program's arguments. Host keys must be known before; nothing is asked of a person.
fn arguments(remote: &Remote, service: Service, protocol: Protocol) -> Result<Vec<String>> {
    let UrlParts::Ssh { user, host, port, path } = remote.url.parts() else {
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
fn explain_reading(peer: &str, complaint: &str, _code: Option<i32>) -> Failure {
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

/// The same of a push. Hosts refuse one with words of their own (`marked as read only`, `does not have write access`), so
/// the code tells: the connection stood, and Git was not even started.
fn explain_writing(peer: &str, complaint: &str, code: Option<i32>) -> Failure {
    let failure = explain_reading(peer, complaint, code);
    let is_refused = code.is_some_and(|code| !matches!(code, 0 | GIT_FAILURE | OWN_FAILURE));
    if failure.class() == Class::Stalled || !is_refused {
        return failure;
    }
    let refused = Failure::stalled(format!("{peer} does not take pushes with this SSH key"))
        .hint("give the key the right to write to the repository, or watch it with `notes: false` and a forge's token");
    match last_lines(complaint) {
        Some(lines) => refused.because(lines),
        None => refused,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
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
            let failure = explain_reading("`ssh://h/x`", complaint, Some(255));
            assert_eq!(failure.class(), class, "{complaint}");
            assert!(failure.one_line().contains(words), "{}", failure.one_line());
        }
    }
    #[test]
    fn a_push_that_a_host_refuses_needs_a_person() {
        for (complaint, code, class) in [
            ("ERROR: The key you are authenticating with has been marked as read only.", 1, Class::Stalled),
            ("remote: ERROR: This deploy key does not have write access to this project.", 1, Class::Stalled),
            ("FATAL: W any shop ci DENIED by fallthru", 2, Class::Stalled),
            ("fatal: unable to write: No space left on device", 128, Class::Transient),
            ("ssh: connect to host h port 22: Connection refused", 255, Class::Transient),
            ("git@h: Permission denied (publickey).", 255, Class::Stalled),
            ("", 1, Class::Stalled),
        ] {
            let failure = explain_writing("`ssh://h/x`", complaint, Some(code));
            assert_eq!(failure.class(), class, "{complaint}");
            assert!(failure.one_line().contains(complaint), "{}", failure.one_line());
        }
    }
}
