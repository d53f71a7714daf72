//! What holds at every quiet moment, whatever is still to come: pods hang, hosts refuse statuses, images are being prepared,
//! people keep things waiting.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::model::action::Action;
use crate::model::event::Timer;
use crate::model::ids::{CommitId, RepositoryName, RunId};
use crate::model::pod::{ObservedPod, Origin, Pod, PodOwner, PodPhase, PodTemplate};
use crate::model::run::{DeploymentRun, Run, SequenceRun};
use crate::model::state::{ConfigState, Version, spec_of};
use crate::simulation::outcome::Waiting;
use crate::store::{OutboxRow, Versioned};
use crate::testing::interleaved::checks::rest::{At, as_declared};
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::daemon::Surroundings;

impl At<'_> {
    /// What goes on has a reason that can end: it says what is in its way, or something that it waits for is there, or is asked
    /// for. That it has taken too long one day is none.
    pub(super) fn what_goes_on_waits_for_something(&self) -> Held {
        let (open, rows) = (self.around.disk.open_runs(), self.around.disk.outbox());
        let pods = self.around.runtime.pods();
        let is_open = |id: &RunId| open.iter().any(|run| run.value.id() == id);
        let waits = |run: &&Arc<Versioned<Run>>| {
            let says = match &run.value {
                Run::Sequence(run) => says_or_deploys(run, is_open),
                Run::Deployment(run) => says_or_is_led(run, &rows),
            };
            let is_awaited = |pod: &ObservedPod| is_awaited(&run.value, pod);
            says || is_asked_for(run.value.id(), &rows) || pods.iter().any(is_awaited)
        };
        let idle = open.iter().find(|run| !waits(run)).map(|run| match &run.value {
            Run::Sequence(run) => format!("{} goes on at {:?}", run.id, run.state),
            Run::Deployment(run) => format!("{} goes on at {:?}", run.id, run.step),
        });
        Ok(idle.map_or(Ok(()), |idle| {
            let what = format!("{idle}, and nothing that it waits for is to come");
            Err(Violation::new(Invariant::SaysWhatItWaitsFor, what))
        }))
    }

    /// What is ready is a version that its record names, with the content that this has: what serves, stands beside it, or is
    /// to run while a deployment goes on. What another life of the store has left is judged at the end: it serves on until it is
    /// taken over, and where the version fails that took it over.
    pub(super) fn only_what_is_named_serves(&self) -> Held {
        let down = self.down()?;
        let open = self.around.disk.open_runs();
        let configs = self.around.disk.configs();
        let pods = self.around.runtime.templates();
        for (pod, seen) in &pods {
            let PodOwner::Version { config, version, .. } = &seen.owner else { continue };
            if seen.origin != Origin::Own || !matches!(seen.phase, PodPhase::Ready { .. }) {
                continue;
            }
            let Some(record) = configs.iter().map(|record| &record.value).find(|record| record.key == *config) else {
                return Ok(Err(serves(seen, "no record names its deployment config")));
            };
            if down.contains(&record.repository) || record.removed {
                return Ok(Err(serves(seen, "it should be gone")));
            }
            let is_open = open.iter().any(|run| matches!(&run.value, Run::Deployment(run) if run.config == *config));
            // What is to go stays while nothing else gets ready.
            if !is_named(record, *version, is_open) && !lacks_pods(record, &pods) {
                return Ok(Err(serves(seen, "its record names another version")));
            }
            if !runs_as_recorded(record, *version, pod) {
                return Ok(Err(serves(seen, "its record says that it is something else")));
            }
        }
        Ok(Ok(()))
    }

    /// Whether nothing happens any more however much time passes, before somebody does something.
    pub(super) fn nothing_is_to_come(&self) -> bool {
        let Surroundings { disk, runtime, alarms, .. } = self.around;
        let moves = |pod: &ObservedPod| matches!(pod.phase, PodPhase::Starting | PodPhase::Stopping { .. });
        let is_idle = disk.open_runs().is_empty() && disk.outbox().is_empty() && alarms.next().is_none();
        is_idle && !runtime.pods().iter().any(moves)
    }

    /// The commits of which something is still to be written.
    pub(super) fn reports(&self) -> BTreeSet<(RepositoryName, CommitId)> {
        let rows = self.around.disk.outbox();
        let report = |row: &Arc<OutboxRow>| match &row.action {
            Ok(Action::Report { repository, commit, .. }) => Some((repository.clone(), commit.clone())),
            _ => None,
        };
        rows.iter().filter_map(report).collect()
    }
}

fn serves(seen: &ObservedPod, what: &str) -> Violation {
    Violation::new(Invariant::RecordedServes, format!("{} is ready, and {what}", seen.id))
}

/// Whether a sequence says what it waits for, or that is a deployment which goes on.
fn says_or_deploys(run: &SequenceRun, is_open: impl Fn(&RunId) -> bool) -> bool {
    let mut deployments = run.task().into_iter().flat_map(|task| &task.deployments);
    !Waiting::of(run).message.is_empty() || deployments.any(|deployment| deployment.run.as_ref().is_some_and(&is_open))
}

/// Whether a deployment says what is in its way, or goes step by step with others that do. A pause that is to end by itself has
/// its timer.
fn says_or_is_led(run: &DeploymentRun, rows: &[Arc<OutboxRow>]) -> bool {
    let is_led = run.led_by.is_some() || run.controllers.following().next().is_some();
    is_led
        || match run.waits.until.filter(|_| run.waits.paused_by.is_none()) {
            Some(_) => rows.iter().any(|row| row.run == run.id && sets(row, &[Timer::Delay])),
            None => !run.problem.is_empty(),
        }
}

/// Whether something is asked for in a run's name that is not performed yet: an image, a pod, another try.
fn is_asked_for(run: &RunId, rows: &[Arc<OutboxRow>]) -> bool {
    let limits = [Timer::Deadline, Timer::Progress, Timer::Start, Timer::Finish];
    rows.iter().any(|row| row.run == *run && !sets(row, &limits))
}

fn sets(row: &OutboxRow, timers: &[Timer]) -> bool {
    matches!(&row.action, Ok(Action::SetTimer { timer, .. }) if timers.contains(timer))
}

/// Whether a run waits for a pod to start or to end, or to be ready for long enough.
fn is_awaited(run: &Run, pod: &ObservedPod) -> bool {
    match (&pod.owner, run) {
        (PodOwner::Run { run: of, .. }, _) => of == run.id() && pod.runs(),
        (PodOwner::Version { config, .. }, Run::Deployment(run)) => {
            let is_new = matches!(pod.phase, PodPhase::Ready { .. }) && run.spec.min_ready_seconds > 0;
            let moves = matches!(pod.phase, PodPhase::Starting | PodPhase::Stopping { .. });
            *config == run.config && (is_new || moves)
        }
        (PodOwner::Version { .. }, Run::Sequence(_)) | (PodOwner::Unknown, _) => false,
    }
}

fn is_named(record: &ConfigState, version: u32, is_open: bool) -> bool {
    let wanted = &record.wanted;
    let stands = named(record, version).is_some();
    let falls_back = wanted.fallback.is_some_and(|fallback| fallback.version == version);
    let is_attempted = record.attempted.as_ref().is_some_and(|attempt| attempt.version.number == version);
    stands || is_open && (is_attempted || falls_back || wanted.targets.contains_key(&version))
}

/// Whether some of the pods that should run are not ready.
fn lacks_pods(record: &ConfigState, pods: &[(Pod, ObservedPod)]) -> bool {
    let is_ready = |seen: &ObservedPod, wanted: u32| {
        matches!(&seen.owner, PodOwner::Version { config, version, .. } if *config == record.key && *version == wanted)
            && matches!(seen.phase, PodPhase::Ready { .. })
    };
    let ready = |version: u32| pods.iter().filter(|(_, seen)| is_ready(seen, version)).count();
    record.wanted.counts().into_iter().any(|(version, count)| ready(version) < count as usize)
}

/// What serves, or stands beside that, if it is this version.
fn named(record: &ConfigState, version: u32) -> Option<&Version> {
    let beside = record.beside.as_ref().map(|beside| &beside.version);
    record.serving.iter().chain(beside).find(|named| named.number == version)
}

fn runs_as_recorded(record: &ConfigState, version: u32, pod: &Pod) -> bool {
    let attempted = record.attempted.as_ref().map(|attempt| &attempt.version).filter(|it| it.number == version);
    let Some(version) = named(record, version).or(attempted) else { return true };
    let declared: Option<PodTemplate> = spec_of(&version.object).ok().map(|spec| as_declared(&spec.template));
    declared.is_some_and(|declared| declared == as_declared(&pod.template))
}
