//! `launchway repository VERB`.

mod check;
mod webhook;

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::{Args, Subcommand};

use super::arguments::Global;
use super::client::Client;
use super::get::{repositories, short};
use super::here;
use super::moment::age;
use super::output::{Complaint, Exit, Outcome, Output, Table};
use super::target;
use crate::error::{Context, Failure, Result};
use crate::server::view::{List, RepositoryView, WebhookCallView};
use crate::source::{Limits, RemoteUrl, Repository};

/// The line by which our own hook is known again.
const SIGNATURE: &str = "# Written by `launchway repository install-hook`.";

/// List watched repositories, and make pushes tell launchway
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway repository list\n  launchway repository check --config /etc/launchway.yaml"
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the watched repositories
    #[command(after_help = "Example:\n  launchway repository list")]
    List,
    /// Look whether a repository answers, whether its host calls, and how far pods are kept apart here
    #[command(
        after_help = "Examples:\n  launchway repository check https://git.example/shop.git\n  launchway repository check /srv/git/shop.git --branch main\n  launchway repository check --config /etc/launchway.yaml\n  launchway repository check shop --config /etc/launchway.yaml\n  launchway repository check shop --config /etc/launchway.yaml --register-webhook\n\nWithout --config no credentials are used. Only --register-webhook changes anything: it makes the host call the daemon\nwith the secret of the configuration. Other webhooks are left alone."
    )]
    Check {
        /// A path or an address; with --config the name of a repository there [default: all of them]
        #[arg(value_name = "PATH, URL or NAME", required_unless_present = "config")]
        which: Option<String>,
        /// The branch [default: the one that the repository's HEAD names]
        #[arg(long, value_name = "NAME", conflicts_with = "config")]
        branch: Option<String>,
        /// The daemon's configuration: its repositories are checked, with their credentials
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Register the webhook on the repository's host, or repair it, and wait for its test delivery
        #[arg(long, requires = "config")]
        register_webhook: bool,
    },
    /// Show what a repository's webhooks came to, newest first
    #[command(
        after_help = "Examples:\n  launchway repository deliveries shop\n  launchway repository deliveries -o json\n\nOf calls that nobody signed, or with another secret, one of each sort is kept, and how many there were."
    )]
    Deliveries {
        /// The repository's name [default: that of the work tree, or the only one]
        name: Option<String>,
    },
    /// Make pushes to a plain repository on this machine show what becomes of them
    #[command(
        after_help = "Example:\n  launchway repository install-hook /srv/git/shop.git -r shop\n\nThe hook never fails a push, and ends within seconds if no daemon answers."
    )]
    InstallHook {
        /// The repository's folder
        path: PathBuf,
    },
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    match &arguments.verb {
        Verb::List => {
            let client = Client::to_read(global).await?;
            output.show(&client.get("repositories", &[]).await?, repositories)?;
        }
        Verb::Deliveries { name } => {
            let client = Client::to_read(global).await?;
            let chosen = name.as_deref().or(global.repository.as_deref());
            let name = target::repository(&client, chosen).await?.name;
            output.show(&client.get(&format!("repositories/{name}/deliveries"), &[]).await?, deliveries)?;
        }
        Verb::Check { which, branch, config, register_webhook } => {
            let asked = check::Asked {
                which: which.as_deref(),
                branch: branch.as_deref(),
                config: config.as_deref(),
                register_webhook: *register_webhook,
            };
            return check::run(&asked, global, output).await;
        }
        Verb::InstallHook { path } => {
            let client = Client::to_read(global).await?;
            let found = Repository::open_local(path, Limits::default()).map_err(Complaint::usage)?;
            let repository = pushed_to(path, &found, &client, global).await?;
            let hook = found.git_dir().join("hooks/post-receive");
            if repository.branch.is_empty() {
                let unknown = format!("nobody could ask yet which branch of `{}` is its main one", repository.name);
                return Err(Failure::waiting(unknown).hint("`launchway sync` asks").into());
            }
            let program = std::env::current_exe().or_stalled(|| "cannot tell where this program is".to_owned())?;
            let state = std::path::absolute(global.state_folder()?);
            let state = state.or_stalled(|| "cannot tell where the state folder is".to_owned())?;
            write_hook(&hook, &hook_text(&program, &state, &repository.name, &repository.branch))?;
            output.line(format!("installed {}", hook.display()))?;
        }
    }
    Ok(Exit::Good)
}

fn deliveries(list: &List<WebhookCallView>) -> String {
    let mut table = Table::new(["AGE", "RESULT", "HOST", "EVENT", "REF", "COMMIT", "TIMES", "REASON"]);
    for call in &list.items {
        let times = if call.times > 1 { call.times.to_string() } else { String::new() };
        table.row([
            age(&call.at),
            call.result.clone(),
            call.host.clone(),
            call.event.clone().unwrap_or_default(),
            call.reference.clone().unwrap_or_default(),
            call.after.as_deref().map(short).unwrap_or_default(),
            times,
            call.reason.clone().unwrap_or_default(),
        ]);
    }
    table.render("No webhook has come.")
}

/// What the daemon calls the bare repository that is pushed to. One that it watches by an address may be anywhere, so a
/// person has to name it.
async fn pushed_to(path: &Path, found: &Repository, client: &Client, global: &Global) -> Outcome<RepositoryView> {
    if !found.is_bare() {
        let failure = Failure::stalled(format!("`{}` has a work tree, so nobody pushes to it", path.display()));
        return Err(Complaint::usage(failure.hint("a commit there is noticed without a hook; name a bare repository")));
    }
    if let Some(name) = &global.repository {
        let named = target::repository(client, Some(name)).await?;
        let is_elsewhere = local_path(&named).is_some_and(|path| !here::is_at(found, &path));
        return if is_elsewhere { Err(not_watched(path, &[named])) } else { Ok(named) };
    }
    let watched: List<RepositoryView> = client.get("repositories", &[]).await?;
    let is_it = |view: &&RepositoryView| local_path(view).is_some_and(|path| here::is_at(found, &path));
    watched.items.iter().find(is_it).cloned().ok_or_else(|| not_watched(path, &watched.items))
}

fn local_path(watched: &RepositoryView) -> Option<PathBuf> {
    RemoteUrl::parse(&watched.url, true).ok()?.local_path().map(Path::to_owned)
}

fn not_watched(path: &Path, watched: &[RepositoryView]) -> Complaint {
    let known = watched.iter().map(|view| format!("\n  -r {}: {}", view.name, view.url)).collect::<String>();
    let failure = Failure::stalled(format!("nobody watches `{}`", path.display()));
    Complaint::usage(failure.hint(format!("name one that is watched, by an address with `-r`:{known}")))
}

fn hook_text(program: &Path, state: &Path, repository: &str, branch: &str) -> String {
    let (program, state) = (quoted(&program.to_string_lossy()), quoted(&state.to_string_lossy()));
    let (repository, reference) = (quoted(repository), quoted(&format!("refs/heads/{branch}")));
    format!(
        "#!/bin/sh\n\
         {SIGNATURE}\n\
         # Tells launchway of a push and shows what becomes of it. The push has happened by then and never fails here.\n\
         while read -r _ new ref; do\n\
         \x20 [ \"$ref\" = {reference} ] || continue\n\
         \x20 {program} --state {state} sync {repository} --follow \"$new\" </dev/null || true\n\
         done\n\
         exit 0\n"
    )
}

/// A word of a shell script that means itself.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Writes the hook in one step, over none and over an older one of ours only.
fn write_hook(hook: &Path, text: &str) -> Result<()> {
    let complain = || format!("cannot write `{}`", hook.display());
    match fs::read_to_string(hook) {
        Ok(found) if !found.contains(SIGNATURE) => {
            let line = text.lines().find(|line| line.contains(" sync ")).unwrap_or_default().trim();
            return Err(Failure::stalled(format!("`{}` is there already, and not ours", hook.display()))
                .hint(format!("let it run, for each line `old new ref` of its input: {line}")));
        }
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).or_stalled(complain),
        _ => {}
    }
    let written = write_as_owner(hook, text).or_stalled(complain)?;
    if written.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&written.stderr).trim().to_owned();
    Err(Failure::stalled(complain()).hint("run this as the owner of the repository, or as root").because(said))
}

/// Writes a file that is in the owner's hands, with what the owner may do: for root, a link of theirs would lead anywhere.
fn write_as_owner(hook: &Path, text: &str) -> std::io::Result<std::process::Output> {
    const WRITE: &str =
        "umask 022 && mkdir -p \"$1\" && cat >\"$2.new\" && chmod 755 \"$2.new\" && mv \"$2.new\" \"$2\"";
    let folder = hook.parent().unwrap_or(hook);
    let repository = fs::metadata(folder.parent().unwrap_or(folder))?;
    let mut command = Command::new("sh");
    command.args(["-c", WRITE, "sh"]).arg(folder).arg(hook).current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(repository.uid()).gid(repository.gid());
    }
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // Why it does not read is in what it says.
        drop(input.write_all(text.as_bytes()));
    }
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_hook_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let hook = folder.path().join("hooks/post-receive");
        let text = |state: &str| hook_text(Path::new("/bin/launchway"), Path::new(state), "shop", "main");
        write_hook(&hook, &text("/a")).expect("new");
        write_hook(&hook, &text("/b")).expect("over ours");
        assert!(fs::read_to_string(&hook).expect("there").contains("--state '/b'"));
        fs::write(&hook, "#!/bin/sh\necho mine\n").expect("written");
        let failure = write_hook(&hook, &text("/c")).expect_err("refused");
        assert!(failure.hint_text().is_some_and(|hint| hint.contains("sync 'shop'")));
    }

    #[test]
    fn odd_names_stay_words() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
