//! `launchway shim <pod dir>`: the small process that owns a pod and outlives the daemon.
//!
//! One thread and one loop: [`machine`] decides, [`supervisor`] does. A pod is started by one shim only: the lock says
//! which one lives, the intent in the status says that commands may have run.

pub(crate) mod changes;
mod child;
mod end_pods;
mod handlers;
mod held_logs;
mod machine;
mod probe;
mod remark;
mod report;
pub(crate) mod spawn;
mod supervisor;
mod unit;
pub(crate) mod wake;
pub(crate) mod watch;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{getpid, set_child_subreaper, setsid};

use self::report::Report;
use self::supervisor::{Supervisor, outcome_message};
use crate::clock::{Clock, SystemClock};
use crate::error::{Context, Failure, Result};
use crate::model::outcome::{FailureReason, PodOutcome};
use crate::model::pod::PodPhase;
use crate::runtime::local::host::cgroup::{Limits, PodGroups};
use crate::runtime::local::host::files;
use crate::runtime::local::host::open_files;
use crate::runtime::local::host::process::{Belonging, ProcessId, boot_id, sweep};
use crate::runtime::local::pod::paths::PodDir;
use crate::runtime::local::pod::record::PodRecord;
use crate::runtime::local::pod::status::PodStatus;
use crate::runtime::local::pod::volume;

/// How long a dead shim's processes may resist before their end is recorded all the same.
const SWEEP_PATIENCE: Duration = Duration::from_secs(60);

/// Runs the verb that ends all pods, for a machine that is about to shut down.
pub(crate) fn end_pods(arguments: &[OsString]) -> ExitCode {
    end_pods::run(arguments)
}

/// Runs the verb.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let [dir] = arguments else { return ExitCode::from(2) };
    open_files::restore();
    match supervise(&PodDir::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Its standard error is the pod's `shim.log`; if that cannot be written there is nobody left to tell.
            io::Write::write_all(&mut io::stderr(), format!("{}\n", failure.one_line()).as_bytes()).ok();
            ExitCode::FAILURE
        }
    }
}

/// Owns a pod until it ended. Does nothing if another shim owns it or it ended before.
fn supervise(dir: &PodDir) -> Result<()> {
    let Some(lock) = files::take_lock(&dir.lock()).or_transient(|| "cannot lock the pod".to_owned())? else {
        return Ok(());
    };
    let before = PodStatus::read_or_lost(dir)?;
    if before.as_ref().is_some_and(PodStatus::ended) {
        return Ok(());
    }
    let record = PodRecord::read(dir)?.ok_or_else(|| Failure::stalled("there is no pod in this folder"))?;
    stand_alone().or_transient(|| "cannot become the pod's owner".to_owned())?;
    let begun = PodStatus::beginning(boot_id(), ProcessId::of(getpid().as_raw_nonzero().get()));
    let report = Report::new(&record, (dir.clone(), &lock), begun);
    let mut report = report.or_transient(|| "cannot find the pod's folder".to_owned())?;
    if let Some(before) = before.filter(|status| status.intent) {
        return report.tell(after_a_death(&record, dir, before));
    }
    if let Err(problem) = prepare(&record, dir) {
        return report.tell(ended(report.status(), not_started(problem)));
    }
    let limits: Vec<Limits> = record.containers().map(|container| Limits::of(&container.resources)).collect();
    let groups = PodGroups::make(&record.uid, &limits);
    report.intend(groups.clone())?;
    let supervisor = Supervisor::new(dir, &record, &SystemClock, report);
    supervisor.or_transient(|| "cannot listen to the daemon".to_owned())?.run();
    groups.remove();
    Ok(())
}

/// Leaves the session of whom started it, and adopts the orphans among its descendants.
fn stand_alone() -> io::Result<()> {
    // It fails only for a process that leads a group, which then is alone already.
    setsid().ok();
    std::env::set_current_dir("/")?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Makes all that the containers find when they start.
fn prepare(record: &PodRecord, dir: &PodDir) -> Result<(), String> {
    let folders = [dir.path().join("logs"), dir.home(), dir.scratch()];
    for folder in &folders {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| format!("cannot make `{}`: {error}", folder.display()))?;
    }
    volume::own_home(record, dir)?;
    volume::make_all(record, dir)
}

/// The status of a pod whose shim died after it may have started commands: nobody knows what they did.
fn after_a_death(record: &PodRecord, dir: &PodDir, before: PodStatus) -> PodStatus {
    let rebooted = before.boot_id != boot_id();
    if !rebooted {
        if before.groups.exist() {
            before.groups.sweep(None, SWEEP_PATIENCE);
            before.groups.remove();
        } else {
            sweep(&[Belonging::of_pod(&record.mark())], SWEEP_PATIENCE);
        }
    }
    files::remove_if_there(&dir.ready()).ok();
    let what = if rebooted { "the machine was restarted" } else { "its shim was killed" };
    let outcome = PodOutcome::unknown(format!("{what} while it ran"));
    ended(&before, outcome)
}

fn ended(before: &PodStatus, outcome: PodOutcome) -> PodStatus {
    let message = outcome_message(&outcome);
    PodStatus { phase: PodPhase::Ended { outcome }, message, ended_at: Some(SystemClock.now()), ..before.clone() }
}

fn not_started(message: String) -> PodOutcome {
    PodOutcome::Failed { code: 127, reason: FailureReason::StartError, message }
}
