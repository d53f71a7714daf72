//! What the verbs share that are a daemon, if only for a moment.

use std::path::Path;

use tokio::signal::unix::{SignalKind, signal};

use crate::config::Settings;
use crate::control::app::App;
use crate::control::commands::by_hand;
use crate::error::{Context, Result};
use crate::executor::switch;
use crate::model::ids::RepositoryName;

/// Who asks for something where no daemon is asked.
pub(super) use crate::server::access::THIS_MACHINE;

/// Ends with Ctrl-C or SIGTERM.
///
/// # Errors
/// If signals cannot be waited for.
pub(super) fn stop_signal() -> Result<impl Future<Output = ()>> {
    let listen = |kind| signal(kind).or_stalled(|| "cannot wait for signals".to_owned());
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Stops what a repository runs on a state folder that no daemon uses.
///
/// # Errors
/// If a daemon uses it after all, or it cannot be used.
pub(super) async fn take_down(state: &Path, repository: &RepositoryName) -> Result<String> {
    let settings = Settings { listen: ([127, 0, 0, 1], 0).into(), ..Settings::of([]) };
    let app = App::start(&settings, state).await?;
    let stopped = switch::down(&app.driver, repository, THIS_MACHINE).await?;
    let gone = app.wait_until_gone(repository).await;
    app.stop().await;
    gone?;
    Ok(by_hand::is_down(repository, stopped, "launchway up"))
}
