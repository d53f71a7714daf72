//! `launchway migrate KIND`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{Complaint, Exit, Outcome, Output, remark};
use super::work_file::{WorkFile, refused};
use crate::error::Failure;
use crate::manifest::migrate::deployment_configs;

/// Write files of older kinds as those that took their place
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway migrate deploymentconfig deploy/web.yaml --write")]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// A `DeploymentConfig` as the `Deployment` that means the same
    ///
    /// Hooks, triggers and launchway's own strategies are in its annotations. The rest of the file stays as it is. What has no
    /// counterpart is said on standard error.
    #[command(
        name = "deploymentconfig",
        visible_alias = "dc",
        after_help = "Examples:\n  launchway migrate deploymentconfig deploy/web.yaml\n  launchway migrate deploymentconfig deploy/web.yaml --write"
    )]
    DeploymentConfig {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Change the file instead of printing what it becomes
        #[arg(long)]
        write: bool,
    },
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let Verb::DeploymentConfig { file, write } = &arguments.verb;
    let read = WorkFile::read(file, &file.display().to_string())?;
    let migrated = deployment_configs(&read.name, &read.text).map_err(|problem| refused(&problem))?;
    if migrated.names.is_empty() {
        let failure = Failure::stalled(format!("there is no DeploymentConfig in `{}`", read.name));
        return Err(Complaint::failed(failure));
    }
    migrated.notes.iter().for_each(remark);
    if *write {
        read.write(&migrated.text)?;
        remark(format!("`{}` is changed: commit and push it", read.name));
    } else {
        output.bytes(migrated.text.as_bytes())?;
    }
    Ok(Exit::Good)
}
