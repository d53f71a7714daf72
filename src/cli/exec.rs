//! `launchway exec TARGET -- COMMAND`.

mod conversation;
mod here;
mod printer;

use std::env;
use std::io::{self, IsTerminal};

use clap::Args;

use self::conversation::Conversation;
use self::here::{RawTerminal, Signals};
use self::printer::Printer;
use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Outcome, Output, remark};
use super::target::{self, ConfigName, Target, config_path};
use crate::error::{Context, Failure};
use crate::runtime::exec::Terminal;
use crate::server::api::exec::ExecRequest;
use crate::server::frame::{Ending, PROTOCOL};
use crate::server::view::{ConfigView, List, PodView};

/// What is understood by most terminals.
const USUAL_TERMINAL: &str = "xterm";

/// Run a command beside the processes of a pod
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway exec dc/web -s dev -- env\n  launchway exec dc/web -it -- bash\n  launchway exec pod/web-3-1 -- ps\n  launchway exec dc/db -i -- psql shop < dump.sql\n\nExits with the command's exit code, or 128 + the number of the signal that ended it."
)]
pub(super) struct Arguments {
    /// Where: dc/NAME or pod/NAME
    #[arg(value_name = "TARGET")]
    target: Target,
    /// In this pod of the deployment config [default: one that is ready]
    #[arg(long, value_name = "NAME")]
    pod: Option<String>,
    /// In this container [default: the first]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Pass standard input on to the command
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Run the command on a terminal
    #[arg(short = 't', long)]
    tty: bool,
    /// The command, not run by a shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let (config, pod) = find(arguments, &client, global).await?;
    let Arguments { command, container, stdin, .. } = arguments;
    let terminal = terminal(arguments)?;
    let raw = terminal.is_some() && *stdin;
    let request = ExecRequest {
        command: command.clone(),
        pod,
        container: container.clone(),
        stdin: *stdin,
        terminal: terminal.clone(),
    };
    // Before anything is sent, so that no signal finds the terminal raw and ends this process.
    let mut signals = raw.then(Signals::listen).transpose().or_stalled(|| "cannot listen to signals".to_owned())?;
    let upgraded = client.upgrade(&format!("{}/exec", config_path(&config)), PROTOCOL, &request).await?;
    let mut printer = Printer::new(output.format());
    let conversation = Conversation::new(upgraded, *stdin, terminal.is_some());
    let conversation = conversation.or_stalled(|| "cannot listen to the terminal".to_owned())?;
    let restored = raw.then(RawTerminal::enter).transpose().or_stalled(|| "cannot use the terminal".to_owned())?;
    let ending = tokio::select! {
        ending = conversation.hold(&mut printer) => ending,
        number = Signals::next(signals.as_mut()) => return Ok(Exit::Command(128 + number)),
    };
    drop(restored);
    match ending? {
        Ending::Code(code) => {
            printer.finish(code, output)?;
            Ok(Exit::Command(exit_code(code)))
        }
        Ending::Problem(problem) => Err(Complaint::from(Failure::transient(problem))),
    }
}

/// The deployment config that is meant, and which of its pods, if that was said.
async fn find(arguments: &Arguments, client: &Client, global: &Global) -> Outcome<(ConfigView, Option<String>)> {
    match (&arguments.target, &arguments.pod) {
        (Target::Config(name), pod) => Ok((ConfigName(name.clone()).find(client, global).await?, pod.clone())),
        (Target::Pod(name), None) => Ok((config_of_pod(name, client, global).await?, Some(name.clone()))),
        (Target::Pod(_), Some(_)) => {
            let failure = Failure::stalled("`--pod` is for a deployment config");
            Err(Complaint::usage(failure.hint("leave it out, or name dc/NAME")))
        }
        (Target::Run(_) | Target::Revision(_) | Target::ImageStream(_), _) => {
            Err(Complaint::usage(Failure::stalled("commands run in pods: name dc/NAME or pod/NAME")))
        }
    }
}

/// The deployment config whose pod has a name. Namespaces may have pods of one name.
async fn config_of_pod(name: &str, client: &Client, global: &Global) -> Outcome<ConfigView> {
    let chosen = target::chosen(client, global.repository.as_deref()).await?;
    let pods: List<PodView> = client.get("pods", &[("stage", global.stage.as_deref())]).await?;
    let mut pods = pods.items.into_iter().filter(|pod| pod.name == name).peekable();
    if pods.peek().is_none() {
        let failure = Failure::stalled(format!("there is no pod `{name}`"));
        return Err(Complaint::failed(failure.hint("`launchway get pods` lists them")));
    }
    let mut found = Vec::new();
    for pod in pods {
        let Some(config) = &pod.config else {
            let failure = Failure::stalled(format!("pod `{name}` is of a hook or a task"));
            return Err(Complaint::failed(failure.hint("commands run in the pods of deployment configs")));
        };
        let configs = target::applied(config, client, global, &chosen).await?;
        found.extend(configs.into_iter().filter(|config| config.namespace == pod.namespace));
    }
    target::only(found, &format!("pod `{name}`{}", target::among(&chosen)), target::place)
}

/// The terminal that the command is to have, like the one here. As with `kubectl`, one that is not here is no error.
fn terminal(arguments: &Arguments) -> Outcome<Option<Terminal>> {
    if !arguments.tty {
        return Ok(None);
    }
    let is_here = if arguments.stdin { io::stdin().is_terminal() } else { io::stdout().is_terminal() };
    if !is_here {
        remark("there is no terminal here, so the command gets none");
        return Ok(None);
    }
    let kind = env::var("TERM").ok().filter(|kind| !kind.is_empty()).unwrap_or_else(|| USUAL_TERMINAL.to_owned());
    let size = here::size().or_stalled(|| "cannot ask the terminal for its size".to_owned())?;
    Ok(Some(Terminal { kind, size }))
}

/// An exit code as a process can have it.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(u8::MAX)
}
