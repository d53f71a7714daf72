//! `launchway serve`.

use std::path::{Path, PathBuf};
use std::pin::pin;

use clap::Args;

use super::arguments::Global;
use super::daemon;
use super::output::{Complaint, Exit, Outcome, Output};
use crate::config::Settings;
use crate::control::app::App;
use crate::error::Failure;

/// Run the daemon: repositories, webhooks, API and page, as a configuration file says
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway serve --config /etc/launchway.yaml")]
pub(super) struct Arguments {
    /// The configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let settings = load(&arguments.config)?;
    let state = match (&global.state, &settings.state) {
        (None, Some(state)) => state.clone(),
        _ => global.state_folder()?,
    };
    // Whoever stops it while it starts, as a machine that shuts down, or right after it says that it serves, stops it too.
    let mut stop = pin!(daemon::stop_signal()?);
    let app = tokio::select! {
        app = App::start(&settings, &state) => app?,
        () = &mut stop => return Ok(Exit::Good),
    };
    output.line(format!("serving {}", app.url))?;
    let ended = tokio::select! {
        () = &mut stop => Ok(Exit::Good),
        failure = app.lost() => Err(Complaint::from(failure)),
    };
    app.stop().await;
    ended
}

/// Reads a configuration; all that is wrong with it is reported at once.
pub(super) fn load(config: &Path) -> Outcome<Settings> {
    Settings::load(config).map_err(|problems| {
        let told = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        Complaint::usage(Failure::stalled(format!("the configuration cannot be used:\n{told}")))
    })
}
