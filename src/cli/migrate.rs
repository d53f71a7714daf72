//! `launchway migrate KIND`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{Complaint, Exit, Outcome, Output, remark};
use super::work_file::{WorkFile, refused};
use crate::error::Failure;
use crate::manifest::migrate::{deployment_configs, shipyard};

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
    /// A `Shipyard` of 0.1 as the one of 0.2 that does the same
    ///
    /// Strategies become tasks, the order of the stages becomes `triggeredOn`. What was said in another way, or has no
    /// counterpart, is told on standard error.
    #[command(
        after_help = "Examples:\n  launchway migrate shipyard shipyard.yaml\n  launchway migrate shipyard shipyard.yaml --write"
    )]
    Shipyard {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Change the file instead of printing what it becomes
        #[arg(long)]
        write: bool,
    },
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let (file, write, what) = match &arguments.verb {
        Verb::DeploymentConfig { file, write } => (file, *write, "DeploymentConfig"),
        Verb::Shipyard { file, write } => (file, *write, "Shipyard of 0.1"),
    };
    let read = WorkFile::read(file, &file.display().to_string())?;
    let migrated = match &arguments.verb {
        Verb::DeploymentConfig { .. } => deployment_configs(&read.name, &read.text),
        Verb::Shipyard { .. } => shipyard(&read.name, &read.text),
    };
    let migrated = migrated.map_err(|problem| refused(&problem))?;
    if migrated.names.is_empty() {
        return Err(Complaint::failed(Failure::stalled(format!("there is no {what} in `{}`", read.name))));
    }
    migrated.notes.iter().for_each(remark);
    if write {
        read.write(&migrated.text)?;
        remark(format!("`{}` is changed: commit and push it", read.name));
    } else {
        output.bytes(migrated.text.as_bytes())?;
    }
    Ok(Exit::Good)
}
