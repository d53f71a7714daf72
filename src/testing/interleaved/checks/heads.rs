//! What the heads of all repositories come to once nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::sync::FILE;
use crate::error::Result;
use crate::executor::drive::Driver;
use crate::model::deployment_config::DeploymentConfigSpec;
use crate::model::ids::{CommitId, ConfigKey, Digest, ProjectName, RepositoryName, ServiceKey};
use crate::model::object::{Kind, Object};
use crate::model::run::{Run, SequenceRun};
use crate::model::state::{Attempt, ConfigState, RevisionResult, RevisionState, spec_of};
use crate::plan::build::content_of;
use crate::store::RunFilter;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::daemon::Surroundings;
use crate::testing::interleaved::hosted::{Hosted, would_be_planned, would_start};
use crate::testing::interleaved::hosting::Commit;
use crate::testing::interleaved::people::now;

/// Of which words the reasons are for which a head is refused because of a name.
const PROJECT: &str = "declares project";
const NAMESPACE: &str = "both live in namespace";
const LEFT_BEHIND: &str = "would be left behind";
const MOVES: &str = "cannot move to";
const FOR_A_NAME: [&str; 4] = [PROJECT, NAMESPACE, LEFT_BEHIND, MOVES];

/// What is checked of all heads.
pub(super) struct Heads<'a> {
    pub(super) driver: &'a Driver,
    pub(super) around: &'a Surroundings,
}

impl Heads<'_> {
    /// Each head was synced, and is what runs.
    pub(super) fn check(&self) -> Held {
        for name in self.around.hosting.repositories() {
            let Some(head) = self.around.hosting.head(&name) else { continue };
            let state = now(self.driver.store.repository(&name))?.map(|state| state.value);
            if state.as_ref().is_some_and(|state| state.down) {
                continue; // it is synced once it comes up
            }
            let Some(state) = state.filter(|state| state.seen.as_ref() == Some(&head.id)) else {
                let what = format!("nobody synced {} of {name}", head.id.short());
                return Ok(Err(Violation::new(Invariant::HeadsAreSeen, what)));
            };
            if state.applied.as_ref() != Some(&head.id) {
                let stays = self.stays_refused(&name, &head, state.applied.as_ref())?;
                if stays.is_err() {
                    return Ok(stays);
                }
                continue;
            }
            for held in [self.plan_is_empty(&name, &head)?, self.head_runs(&head)?, self.pauses(&head)?] {
                if held.is_err() {
                    return Ok(held);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Every project that some head declares has exactly one repository whose revisions are applied; none at most while one of
    /// them has it from an earlier revision, or waits for a namespace or for what it would leave behind.
    pub(super) fn one_owner(&self) -> Held {
        let mut owners: BTreeMap<ProjectName, Vec<RepositoryName>> = BTreeMap::new();
        let mut waits: BTreeSet<ProjectName> = BTreeSet::new();
        for name in self.around.hosting.repositories() {
            let known = now(self.driver.store.repository(&name))?;
            waits.extend(known.and_then(|known| known.value.project));
            let Some(head) = self.around.hosting.head(&name).filter(|head| !head.is_broken) else { continue };
            let owners = owners.entry(head.project.name.clone()).or_default();
            let Some(revision) = now(self.driver.store.revision(&name, head.id.as_str()))? else { continue };
            if [NAMESPACE, LEFT_BEHIND].iter().any(|why| is_refused_for(&revision, why)) {
                waits.insert(head.project.name.clone());
            } else if !is_refused_for(&revision, PROJECT) {
                owners.push(name);
            }
        }
        let is_wrong = |(project, owners): &(ProjectName, Vec<RepositoryName>)| match owners[..] {
            [] => !waits.contains(project),
            [_] => false,
            [..] => true,
        };
        let wrong = owners.into_iter().find(is_wrong);
        Ok(match wrong {
            Some((project, owners)) => {
                let what = format!("{} repositories have project {project}: {owners:?}", owners.len());
                Err(Violation::new(Invariant::OneOwner, what))
            }
            None => Ok(()),
        })
    }

    /// A head that was refused for a name would be refused again: another has it still. What was refused because of what it would
    /// delete waits for a person.
    fn stays_refused(&self, name: &RepositoryName, head: &Commit, applied: Option<&CommitId>) -> Held {
        let Some(revision) = now(self.driver.store.revision(name, head.id.as_str()))? else { return Ok(Ok(())) };
        if !FOR_A_NAME.iter().any(|why| is_refused_for(&revision, why)) {
            return Ok(Ok(()));
        }
        let hosted = Hosted { hosting: self.around.hosting.clone(), name: name.clone() };
        if !now(would_be_planned(self.driver, &hosted, head, applied))? {
            return Ok(Ok(()));
        }
        let what = format!("{} of {name} is not applied, and nothing is in its way", head.id.short());
        Ok(Err(Violation::new(Invariant::HeadsAreSeen, what)))
    }

    fn plan_is_empty(&self, name: &RepositoryName, head: &Commit) -> Held {
        let holds = now(self.driver.store.holds())?.whole()?;
        let hosted = Hosted { hosting: self.around.hosting.clone(), name: name.clone() };
        for run in now(would_start(self.driver, &hosted, head))? {
            if !holds.iter().any(|hold| run.is_held_by(hold)) {
                let changes = run.changes().iter().map(|change| format!("{} {}", change.decision.as_str(), change.key));
                let what = format!("{} would start: {}", run.service, changes.collect::<Vec<_>>().join(", "));
                return Ok(Err(Violation::new(Invariant::PlanIsEmpty, what)));
            }
        }
        Ok(Ok(()))
    }

    /// No rollout stays where it is because of a file that does not pause it.
    fn pauses(&self, head: &Commit) -> Held {
        let open = now(self.driver.store.runs(&RunFilter { open: Some(true), ..RunFilter::default() }))?.whole()?;
        for run in &open {
            let Run::Deployment(run) = &run.value else { continue };
            let is_its = run.config.project == head.project.name && run.waits.paused_by.as_deref() == Some(FILE);
            if is_its && !is_paused(head, &run.config) {
                let what = format!("{} stays where it is, and {} does not pause it", run.id, head.id.short());
                return Ok(Err(Violation::new(Invariant::EveryRunEnds, what)));
            }
        }
        Ok(Ok(()))
    }

    /// Whether a delivery of a service waits because of what it takes from another one that is held.
    fn waits(&self, service: &ServiceKey) -> Result<bool> {
        let holds = now(self.driver.store.holds())?.whole()?;
        let open = now(self.driver.store.runs(&RunFilter { open: Some(true), ..RunFilter::default() }))?.whole()?;
        let is_held = |run: &SequenceRun| &run.service == service && holds.iter().any(|hold| run.is_held_by(hold));
        Ok(open.iter().filter_map(|run| run.value.sequence()).any(is_held))
    }

    fn is_held(&self, service: &ServiceKey) -> Result<bool> {
        let ServiceKey { project, stage, service } = service;
        Ok(now(self.driver.store.holds())?.whole()?.iter().any(|hold| hold.scope.covers(project, stage, service)))
    }

    /// In the first stage every deployment config serves what the head declares, unless that was tried and failed, is
    /// quarantined since, was stopped by a task before, or must not start.
    fn head_runs(&self, head: &Commit) -> Held {
        let Some(stage) = head.project.stages.first() else { return Ok(Ok(())) };
        for declared in stage.objects.iter().filter(|object| object.key.kind == Kind::DeploymentConfig) {
            let key = ConfigKey {
                project: head.project.name.clone(),
                stage: stage.name.clone(),
                name: declared.key.name.clone(),
            };
            let service = ServiceKey {
                project: key.project.clone(),
                stage: key.stage.clone(),
                service: declared.service.clone(),
            };
            let starts_by_itself = |spec: DeploymentConfigSpec| !spec.paused && spec.starts_by_itself();
            let state = now(self.driver.store.config(&key))?.map(|state| state.value);
            let had_by = state.as_ref().map_or_else(|| service.clone(), ConfigState::service_key);
            let is_held = self.is_held(&service)? || self.is_held(&had_by)? || self.waits(&service)?;
            if !spec_of(declared).is_ok_and(starts_by_itself) || is_held {
                continue;
            }
            let is_right = state.is_some_and(|state| {
                let failed =
                    |attempt: &Attempt| attempt.version.object.digest == declared.digest && attempt.outcome.is_some();
                let serves = |object: &Object| object.template() == declared.template();
                state.serving.as_ref().is_some_and(|it| serves(&it.object))
                    || state.quarantine_of(declared).is_some()
                    || state.attempted.as_ref().is_some_and(failed)
            });
            if !is_right && !self.was_stopped(&service, &content_of(stage, &service.service))? {
                let what = format!("{key} does not serve what {} declares", head.id.short());
                return Ok(Err(Violation::new(Invariant::HeadRuns, what)));
            }
        }
        Ok(Ok(()))
    }

    /// Whether a task before the deployment has ended badly for what is declared.
    fn was_stopped(&self, service: &ServiceKey, content: &Digest) -> Result<bool> {
        let last = now(self.driver.store.slot(service))?.and_then(|slot| slot.value.last_delivery);
        let Some(last) = last.filter(|last| &last.content == content) else { return Ok(false) };
        let run = now(self.driver.store.run(&last.run))?.map(|run| run.value);
        let is_bad = |run: &SequenceRun| run.outcome.is_some_and(|outcome| !outcome.passes()) && !run.deployed();
        Ok(run.as_ref().and_then(Run::sequence).map_or(!last.deployed, is_bad)) // its record may be gone
    }
}

/// Whether a revision is refused because another repository has one of its names: for a reason that says so.
fn is_refused_for(revision: &RevisionState, why: &str) -> bool {
    matches!(&revision.result, RevisionResult::Refused { reason } if reason.contains(why))
}

/// Whether a head's file says `paused` of a deployment config.
fn is_paused(head: &Commit, config: &ConfigKey) -> bool {
    let stages = head.project.stages.iter().filter(|stage| stage.name == config.stage);
    let mut declared = stages.flat_map(|stage| stage.objects.iter());
    let is_it = |object: &&Arc<Object>| object.key.kind == Kind::DeploymentConfig && object.key.name == config.name;
    declared.find(is_it).is_some_and(|object| spec_of(object).is_ok_and(|spec| spec.paused))
}
