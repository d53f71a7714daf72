//! `launchway set VERB`: the words of `oc set`, for the files of a work tree.

mod deployment_hook;
mod triggers;

use clap::{Args, Subcommand};

use super::arguments::Global;
use super::output::{Outcome, Output};

/// Change what a file here declares: triggers and hooks
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway set triggers dc/web --manual\n  launchway set deployment-hook dc/web --pre -- bin/migrate\n\nThe file in the work tree is changed, and nothing that runs: commit and push it."
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Triggers(triggers::Arguments),
    DeploymentHook(deployment_hook::Arguments),
}

pub(super) fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    match &arguments.verb {
        Verb::Triggers(arguments) => triggers::run(arguments, global, output),
        Verb::DeploymentHook(arguments) => deployment_hook::run(arguments, global, output),
    }
}
