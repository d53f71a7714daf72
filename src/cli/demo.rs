//! `launchway demo`: the whole story on this machine. Every claim is observed from outside: over HTTP, with `git`,
//! through the API, in files that hooks append to.

mod crash;
mod ending;
mod example;
mod failing_hook;
mod first_push;
mod git;
mod git_host;
mod hosted;
mod one_service;
mod readme;
mod rollback;
mod scene;
mod server;
mod story;
mod visitors;

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use clap::Args;

use super::daemon;
use super::output::{Complaint, Exit, Outcome, Output};
use crate::error::{Context, Failure, Result};
use scene::Scene;
use story::Story;

/// Tell the whole story on this machine, with nothing prepared: pushes, deployments, hooks, mistakes, a crash, a rollback
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  launchway demo\n  launchway demo --keep\n\nNeeds git and python3, and no network. Exits with 0 only if everything was observed as told."
)]
pub(super) struct Arguments {
    /// Leave everything running at the end, to go on by hand
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    has_python().await?;
    let mut story = Story::new(output);
    let folder = new_folder()?;
    let mut scene = match Scene::prepare(&folder).await {
        Ok(scene) => scene,
        Err(failure) => return Err(ending::remove(&folder).err().unwrap_or(failure).into()),
    };
    let stop = daemon::stop_signal()?;
    let told = tokio::select! {
        told = tell(&mut scene, &mut story) => told,
        () = stop => Err(Complaint::failed(Failure::stalled("interrupted"))),
    };
    let ended = end(&mut scene, &mut story, arguments.keep, told.is_err()).await;
    let finished = story.finish();
    told.and(ended).and(finished).map(|()| Exit::Good)
}

async fn end(scene: &mut Scene, story: &mut Story<'_>, keep: bool, failed: bool) -> Outcome<()> {
    if failed {
        story.command(&format!("tail {}", scene.server.log().display()), &scene.server.last_words())?;
    }
    if keep && scene.server.pid().is_some() {
        return ending::go_on(scene, story);
    }
    ending::clean(scene).await?;
    ending::see_more(story)
}

async fn tell(scene: &mut Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.say(format!("A repository from the built-in example: {}", scene.git.origin()))?;
    scene.server.start().await?;
    let (configuration, pid) = (scene.server.configuration(), scene.server.pid().unwrap_or_default());
    story.say(format!(
        "A daemon that watches it: launchway serve --config {}, process {pid}",
        configuration.display()
    ))?;
    first_push::tell(scene, story).await?;
    one_service::tell(scene, story).await?;
    readme::tell(scene, story).await?;
    failing_hook::tell(scene, story).await?;
    crash::tell(scene, story).await?;
    rollback::tell(scene, story).await?;
    hosted::tell(scene, story).await?;
    ending::show(scene, story).await
}

/// The services of the example are written in Python.
async fn has_python() -> Result<()> {
    let mut python = tokio::process::Command::new("python3");
    let output = python.arg("--version").kill_on_drop(true).output().await;
    output.map(|_| ()).map_err(|error| {
        Failure::transient("cannot run `python3`").because(error).hint("install it: apt install python3")
    })
}

/// A folder for its owner's eyes only.
fn new_folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("launchway-demo-{}", ulid::Ulid::generate()));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    made.or_stalled(|| format!("cannot make `{}`", folder.display()))?;
    Ok(folder)
}
