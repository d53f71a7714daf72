//! `launchway exec dc/NAME -- COMMAND`.

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
use super::target::{ConfigName, config_path};
use crate::error::{Context, Failure};
use crate::runtime::exec::Terminal;
use crate::server::api::exec::ExecRequest;
use crate::server::frame::{Ending, PROTOCOL};

/// What is understood by most terminals.
const USUAL_TERMINAL: &str = "xterm";

/// Run a command beside the processes of a pod
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway exec dc/web -s dev -- env\n  launchway exec dc/web -it -- bash\n  launchway exec dc/db -i -- psql shop < dump.sql\n\nExits with the command's exit code, or 128 + the number of the signal that ended it."
)]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    config: ConfigName,
    /// In this pod [default: one that is ready]
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
    let config = arguments.config.find(&client, global).await?;
    let Arguments { command, pod, container, stdin, .. } = arguments;
    let terminal = terminal(arguments)?;
    let raw = terminal.is_some() && *stdin;
    let request = ExecRequest {
        command: command.clone(),
        pod: pod.clone(),
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
