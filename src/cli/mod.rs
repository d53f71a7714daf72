//! The command line: one file a verb.

mod abort;
mod approve;
pub mod arguments;
mod client;
mod completion;
mod daemon;
mod demo;
mod describe;
mod down;
mod events;
mod exec;
mod follow;
mod get;
mod here;
mod history;
mod hold;
mod listing;
mod logs;
mod man;
mod migrate;
mod moment;
pub mod output;
mod pause;
mod place;
mod plan;
mod prune;
mod release;
mod repository;
mod rerun;
mod rollback;
mod rollout;
mod scale;
mod schema;
mod send;
mod serve;
mod set;
mod simulate;
mod status;
mod store;
mod sync;
mod target;
mod terminal;
mod trigger;
mod under_way;
mod up;
mod validate;
mod why;
mod work_file;
mod work_tree;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::error::{Context, Failure};
use crate::runtime::local;
use crate::telemetry;
use arguments::{Arguments, Global, Verb};
use output::{Complaint, Exit, Format, Outcome, Output, complain};

/// Runs the program: a command, or one of the runtime's own small processes.
pub fn run() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    local::process_entry(&typed).unwrap_or_else(run_command)
}

fn run_command() -> ExitCode {
    let Arguments { global, verb } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let color = !global.no_color;
    let mut output = Output::standard(global.output, color);
    match dispatch(&verb, &global, &mut output) {
        Ok(exit) => exit.into(),
        Err(complaint) => {
            complain(&complaint, color);
            complaint.exit.into()
        }
    }
}

/// Help and version are asked for; anything else is wrong use.
fn refuse(error: &clap::Error) -> ExitCode {
    // Without a terminal nobody is there to read; the exit code still says it.
    drop(error.print());
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Good.into() }
}

fn dispatch(verb: &Verb, global: &Global, output: &mut Output) -> Outcome {
    refuse_names(verb, output.format())?;
    match verb {
        Verb::Demo(arguments) => wait(demo::run(arguments, output)),
        Verb::Up(arguments) => serve(up::run(arguments, global, output), TOLD_OTHERWISE),
        Verb::Down(arguments) => serve(down::run(arguments, global, output), TOLD_OTHERWISE),
        Verb::Serve(arguments) => serve(serve::run(arguments, global, output), telemetry::DEFAULT_FILTER),
        Verb::Validate(arguments) => validate::run(arguments, global, output),
        Verb::Plan(arguments) => wait(plan::run(arguments, global, output)),
        Verb::Get(arguments) => wait(get::run(arguments, global, output)),
        Verb::Describe(arguments) => wait(describe::run(arguments, global, output)),
        Verb::Status(arguments) => wait(status::run(arguments, global, output)),
        Verb::History(arguments) => wait(history::run(arguments, global, output)),
        Verb::Logs(arguments) => wait(logs::run(arguments, global, output)),
        Verb::Events(arguments) => wait(events::run(arguments, global, output)),
        Verb::Why(arguments) => wait(why::run(arguments, global, output)),
        Verb::Rollout(arguments) => wait(rollout::run(arguments, global, output)),
        Verb::Rollback(arguments) => wait(rollback::run(arguments, global, output)),
        Verb::Prune(arguments) => wait(prune::run(arguments, global, output)),
        Verb::Scale(arguments) => wait(scale::run(arguments, global, output)),
        Verb::Hold(arguments) => wait(hold::hold(arguments, global, output)),
        Verb::Release(arguments) => wait(release::run(arguments, global, output)),
        Verb::Trigger(arguments) => wait(trigger::run(arguments, global, output)),
        Verb::Approve(arguments) => wait(approve::approve(arguments, global, output)),
        Verb::Reject(arguments) => wait(approve::reject(arguments, global, output)),
        Verb::Pause(arguments) => wait(pause::pause(arguments, global, output)),
        Verb::Resume(arguments) => wait(pause::resume(arguments, global, output)),
        Verb::Abort(arguments) => wait(abort::run(arguments, global, output)),
        Verb::Rerun(arguments) => wait(rerun::run(arguments, global, output)),
        Verb::Send(arguments) => wait(send::run(arguments, global, output)),
        Verb::Sync(arguments) => wait(sync::run(arguments, global, output)),
        Verb::Repository(arguments) => wait(repository::run(arguments, global, output)),
        Verb::Exec(arguments) => wait(exec::run(arguments, global, output)),
        Verb::Store(arguments) => wait(store::run(arguments, global, output)),
        Verb::Set(arguments) => set::run(arguments, global, output),
        Verb::Simulate(arguments) => wait(simulate::run(arguments, output)),
        Verb::Migrate(arguments) => migrate::run(arguments, output),
        Verb::Schema(arguments) => schema::run(arguments, output),
        Verb::Completion(arguments) => completion::run(arguments, output),
        Verb::Man(arguments) => man::run(arguments, output),
    }
}

/// A script that wants a name must not take anything else for one.
fn refuse_names(verb: &Verb, format: Format) -> Outcome<()> {
    let says_name = matches!(verb, Verb::Rollout(arguments) if arguments.says_name());
    if format != Format::Name || says_name {
        return Ok(());
    }
    Err(Complaint::usage(
        Failure::stalled("`-o name` is for `rollout latest` alone; nothing was done").hint("use human, json or yaml"),
    ))
}

/// What is logged by daemons whose story people read: what is wrong in launchway itself, because all else is told there.
const TOLD_OTHERWISE: &str = "error";

/// How long a daemon that has ended waits for threads that a file system holds, such as one that writes notes to a mount whose
/// server is gone: nobody can end these, and what they have not done is done again after the next start.
const LEFT_BEHIND: Duration = Duration::from_secs(5);

/// Runs a verb that waits for others, on this thread alone.
fn wait(verb: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.or_stalled(|| "cannot start".to_owned())?.block_on(verb)
}

/// Runs a verb that is a daemon, on all cores, with a log; `logged` is what stands there unless the user says otherwise.
fn serve(verb: impl Future<Output = Outcome>, logged: &str) -> Outcome {
    let chosen = std::env::var(telemetry::FILTER_VARIABLE).ok().filter(|filter| !filter.trim().is_empty());
    telemetry::init(telemetry::LogFormat::Human, chosen.as_deref().unwrap_or(logged))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.or_stalled(|| "cannot start".to_owned())?;
    let ended = runtime.block_on(verb);
    runtime.shutdown_timeout(LEFT_BEHIND);
    ended
}
