//! What users type.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use super::output::Format;
use super::{
    abort, approve, completion, demo, describe, down, events, exec, get, history, hold, logs, man, migrate, pause,
    plan, prune, release, repository, rerun, rollback, rollout, scale, schema, send, serve, set, simulate, status,
    store, sync, trigger, up, validate, why,
};
use crate::error::Failure;

/// Makes a Git push a deployment: stages, hooks, and results written back on the commit.
#[derive(Debug, Parser)]
#[command(name = "launchway", version, propagate_version = true, after_help = EXIT_CODES, max_term_width = 100)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   done, and good
  1   what was asked about failed: a deployment, a check
  2   wrong use
  3   the environment is in the way: no server, no access
  10  with --exit-code: there are changes";

/// What every verb takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Options of every verb")]
pub struct Global {
    // Read from the environment here and not by clap, whose usage would show them as required.
    /// The state folder [env: LAUNCHWAY_STATE] [default: launchway in the user's folder for state]
    #[arg(long, value_name = "DIR", global = true)]
    pub(super) state: Option<PathBuf>,
    /// The daemon's address, which needs a token in LAUNCHWAY_TOKEN [env: LAUNCHWAY_SERVER] [default: the state folder's daemon]
    #[arg(long, value_name = "URL", global = true)]
    pub(super) server: Option<String>,
    /// Which repository, where there are several
    #[arg(short, long, value_name = "NAME", global = true)]
    pub(super) repository: Option<String>,
    /// Which stage, where there are several
    #[arg(short, long, value_name = "NAME", global = true)]
    pub(super) stage: Option<String>,
    /// What to print
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t, global = true)]
    pub(super) output: Format,
    /// Print no colour, not even on a terminal
    #[arg(long, global = true)]
    pub(super) no_color: bool,
}

impl Global {
    /// Where this user's state is.
    ///
    /// # Errors
    /// If the environment names no folder.
    pub(super) fn state_folder(&self) -> Result<PathBuf, Failure> {
        match &self.state {
            Some(folder) => Ok(folder.clone()),
            None => default_state(|name| std::env::var_os(name).map(PathBuf::from)),
        }
    }

    /// The daemon's address, if the user names one.
    pub(super) fn server(&self) -> Option<String> {
        let set = || std::env::var("LAUNCHWAY_SERVER").ok().filter(|server| !server.is_empty());
        self.server.clone().or_else(set)
    }
}

/// The state folder of somebody who names none among the arguments: the environment's, else by the XDG base directory
/// specification, in which relative paths do not count.
fn default_state(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(folder) = variable("LAUNCHWAY_STATE").filter(|folder| !folder.as_os_str().is_empty()) {
        return Ok(folder);
    }
    let folder = |name: &str| variable(name).filter(|path| path.is_absolute());
    let base = folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(Path::new(".local/state"))));
    base.map(|base| base.join("launchway")).ok_or_else(|| {
        Failure::stalled("neither `XDG_STATE_HOME` nor `HOME` names a folder for state")
            .hint("name one with `--state DIR`")
    })
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    Demo(demo::Arguments),
    Up(up::Arguments),
    Down(down::Arguments),
    Serve(serve::Arguments),
    Validate(validate::Arguments),
    Plan(plan::Arguments),
    Get(get::Arguments),
    Describe(describe::Arguments),
    Status(status::Arguments),
    History(history::Arguments),
    Logs(logs::Arguments),
    Events(events::Arguments),
    Why(why::Arguments),
    Rollout(rollout::Arguments),
    Rollback(rollback::Arguments),
    Scale(scale::Arguments),
    Set(set::Arguments),
    Migrate(migrate::Arguments),
    Prune(prune::Arguments),
    Hold(hold::Hold),
    Release(release::Arguments),
    Trigger(trigger::Arguments),
    Approve(approve::Approve),
    Reject(approve::Reject),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Abort(abort::Arguments),
    Rerun(rerun::Arguments),
    Send(send::Arguments),
    Simulate(simulate::Arguments),
    Sync(sync::Arguments),
    Repository(repository::Arguments),
    Exec(exec::Arguments),
    Store(store::Arguments),
    Schema(schema::Arguments),
    Completion(completion::Arguments),
    Man(man::Arguments),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn with<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<PathBuf> + 'a {
        |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
    }

    #[test]
    fn the_state_folder_follows_the_environment() {
        let cases: [(&[_], Option<&str>); 6] = [
            (&[("LAUNCHWAY_STATE", "s"), ("XDG_STATE_HOME", "/x")], Some("s")),
            (&[("LAUNCHWAY_STATE", ""), ("HOME", "/h")], Some("/h/.local/state/launchway")),
            (&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")], Some("/x/launchway")),
            (&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")], Some("/h/.local/state/launchway")),
            (&[("HOME", "/h")], Some("/h/.local/state/launchway")),
            (&[], None),
        ];
        for (set, expected) in cases {
            assert_eq!(default_state(with(set)).ok(), expected.map(PathBuf::from), "{set:?}");
        }
    }

    #[test]
    fn every_verb_has_an_example() {
        fn without(command: &clap::Command, place: &str, found: &mut Vec<String>) {
            for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
                let name = format!("{place} {}", verb.get_name());
                let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                if !help.contains(&format!("launchway{name}")) {
                    found.push(name.clone());
                }
                without(verb, &name, found);
            }
        }
        let mut found = Vec::new();
        without(&Arguments::command(), "", &mut found);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn the_definitions_are_sound() {
        Arguments::command().debug_assert();
    }
}
