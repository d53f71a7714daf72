//! What is left to see, how to go on by hand, and how everything the story started is ended.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::scene::Scene;
use super::server::REPOSITORY;
use super::story::{Story, check, eventually};
use crate::cli::output::Outcome;
use crate::error::{Context, Failure, Result};

/// How long pods and services may take to end; longer than the grace period of any of them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shows the commits with what is written on them, and the history.
pub(super) async fn show(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    story.chapter("What stands on the commits")?;
    story.command("git fetch origin refs/notes/launchway:refs/notes/launchway", "")?;
    story.command("git log --notes=launchway", &scene.git.log().await?)?;
    story.chapter("What was deployed")?;
    story.command("launchway history", &scene.launchway(&["history"]).await?)
}

/// How to go on with what was kept.
pub(super) fn go_on(scene: &Scene, story: &mut Story<'_>) -> Outcome<()> {
    let launchway = format!("{} --state {}", scene.server.program().display(), scene.server.state().display());
    let (work, pid) = (scene.git.work(), scene.server.pid().unwrap_or_default());
    story.chapter("It all keeps running; go on by hand")?;
    story.say(format!("  The page:        {}", scene.server.url().unwrap_or_default()))?;
    story.say(format!("  The services:    {launchway} get services"))?;
    story.say(format!("  What runs:       {launchway} get pods"))?;
    story.say(format!("  Change the shop: cd {} && $EDITOR services/web/page.html", work.display()))?;
    story.say("                   git commit -a -m 'A new page' && git push origin main")?;
    story.say(format!("  See it happen:   {launchway} status"))?;
    story.say(format!("  Stop it all:     {launchway} down {REPOSITORY} && kill {pid}"))?;
    // Installed launchables are read-only.
    story.say(format!("                   chmod -R u+w {0} && rm -r {0}", folder(scene).display()))
}

/// How to see more, where nothing was kept.
pub(super) fn see_more(story: &mut Story<'_>) -> Outcome<()> {
    story.say("")?;
    story.say("To go on by hand, keep it all running:  launchway demo --keep")?;
    story.say("To deploy your own repository:          launchway up PATH")
}

/// Ends the daemon, the pods and the services, and deletes the folder.
///
/// # Errors
/// If something cannot be ended or deleted.
pub(super) async fn clean(scene: &mut Scene) -> Result<()> {
    scene.server.stop().await?;
    let output = scene.server.launchway(&["down", REPOSITORY]).kill_on_drop(true).output();
    // Before the first push there is nothing to take down; whatever is left is ended below.
    drop(tokio::time::timeout(PATIENCE, output).await);
    let (state, program) = (scene.server.state(), scene.server.program().to_owned());
    let left = eventually(PATIENCE, async || {
        let left = processes_on(&state, &program);
        check(left.is_empty(), "", format!("{} processes are left", left.len()))
    });
    if left.await.is_err() {
        for pid in processes_on(&state, &program) {
            kill_process(pid, Signal::KILL).or_transient(|| "cannot end what is left".to_owned())?;
        }
    }
    remove(folder(scene))
}

/// Deletes the story's folder.
///
/// # Errors
/// If it cannot be deleted.
pub(super) fn remove(folder: &Path) -> Result<()> {
    make_writable(folder);
    std::fs::remove_dir_all(folder).map_err(|error| {
        Failure::stalled(format!("cannot delete `{}`", folder.display())).because(error).hint("delete it by hand")
    })
}

fn folder(scene: &Scene) -> &Path {
    scene.git.folder()
}

/// Processes of this program, or of one installed beside it, that work on the story's state: shims of pods and services.
fn processes_on(state: &Path, program: &Path) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: &i32| {
        let process = Path::new("/proc").join(pid.to_string());
        let runs = std::fs::read_link(process.join("exe")).is_ok_and(|found| found.parent() == program.parent());
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        runs && String::from_utf8_lossy(&line).contains(&*state.to_string_lossy())
    };
    pids.filter(ours).filter_map(Pid::from_raw).collect()
}

/// Installed launchables are read-only, folders too.
fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    // What cannot be made writable shows when it is deleted.
    drop(std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)));
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}
