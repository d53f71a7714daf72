//! `launchway store VERB`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::arguments::Global;
use super::client::STORE_FILE;
use super::output::{Complaint, Exit, Outcome, Output};
use crate::control::app;
use crate::control::state_folder::StateFolder;
use crate::error::Failure;
use crate::store::sqlite::{SqliteReader, is_store, restore};

/// What can be restored.
const COPY: &str = "name a file that `launchway store backup` wrote";

/// Keep copies of the state
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway store backup /backup/launchway-$(date +%F).db")]
pub(super) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write a whole copy of the state, also while a daemon runs
    #[command(after_help = "Example:\n  launchway store backup /backup/launchway-$(date +%F).db")]
    Backup {
        /// A file that does not exist yet
        file: PathBuf,
    },
    /// Put a copy in the place of the state; no daemon may run
    #[command(after_help = "Example:\n  launchway store restore /backup/launchway-2026-11-21.db")]
    Restore {
        /// The copy
        file: PathBuf,
    },
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let state = global.state_folder()?;
    let store = state.join(STORE_FILE);
    match &arguments.verb {
        Verb::Backup { file } => {
            SqliteReader::open(&store)?.backup(file).await?;
            output.line(format!("wrote {}", file.display()))?;
        }
        Verb::Restore { file } => {
            if !is_store(file).map_err(|failure| Complaint::usage(failure.hint(COPY)))? {
                let failure = Failure::stalled(format!("`{}` is no copy of a store", file.display()));
                return Err(Complaint::usage(failure.hint(COPY)));
            }
            let _owned = StateFolder::new(&state).take(|| app::owner_of(&state))?;
            restore(file, &store)?;
            output.line(format!("restored {}", store.display()))?;
        }
    }
    Ok(Exit::Good)
}
