//! `launchway migrate KIND`.

mod keptn;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::output::{Complaint, Exit, Format, Outcome, Output, remark};
use super::work_file::{WorkFile, refused};
use crate::error::Failure;
use crate::manifest::Problem;
use crate::manifest::migrate::{Migrated, deployment_configs, shipyard};

/// Write files of older kinds as those that took their place
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  launchway migrate deploymentconfig deploy/web.yaml --write\n\nWith `-o json` there are `text`, the `names` of what was migrated, and `notes`."
)]
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
    /// A project as Keptn kept it in Git, a branch or a folder for each stage, as a repository for launchway
    ///
    /// The shipyard gets the objectives of its stages; files of executors are kept where they find them and nobody else reads them.
    /// What has no counterpart is told on standard error.
    #[command(
        after_help = "Examples:\n  launchway migrate keptn ~/sockshop\n  launchway migrate keptn ~/sockshop --into ~/shop --prometheus http://prometheus:9090"
    )]
    Keptn(keptn::Arguments),
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    type Migrate = fn(&str, &str) -> Result<Migrated, Box<Problem>>;
    let (file, write, what, migrate): (_, _, _, Migrate) = match &arguments.verb {
        Verb::DeploymentConfig { file, write } => (file, *write, "DeploymentConfig", deployment_configs),
        Verb::Shipyard { file, write } => (file, *write, "Shipyard of 0.1", shipyard),
        Verb::Keptn(arguments) => return keptn::run(arguments, output),
    };
    let read = WorkFile::read(file, &file.display().to_string())?;
    let migrated = migrate(&read.name, &read.text);
    let migrated = migrated.map_err(|problem| refused(&problem))?;
    if migrated.names.is_empty() {
        return Err(Complaint::failed(Failure::stalled(format!("there is no {what} in `{}`", read.name))));
    }
    migrated.notes.iter().for_each(remark);
    if write {
        read.write(&migrated.text)?;
        remark(format!("`{}` is changed: commit and push it", read.name));
    }
    match output.format() {
        Format::Json => output.show(&migrated, |_| String::new())?,
        _ if write => {}
        _ => output.bytes(migrated.text.as_bytes())?, // which is YAML for whoever asks for that
    }
    Ok(Exit::Good)
}
