//! Carries out what people ask for over the API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;

use crate::control::commands::generate::generate;
use crate::control::commands::propose::propose;
use crate::control::commands::release::release;
use crate::control::commands::rollback::{rollback, undo};
use crate::control::commands::{Command, Commands, Done, Refusal, by_hand, sequences};
use crate::control::environment::EnvironmentRevisions;
use crate::control::housekeeping::Housekeeping;
use crate::control::watcher::Watcher;
use crate::engine::by_hand::{Cancelled, Images, no_stage};
use crate::engine::deployment::deployer::Ask;
use crate::engine::sync::Allowance;
use crate::engine::sync::Trigger;
use crate::error::{Class, Failure, Fault, Result};
use crate::executor::drive::Driver;
use crate::executor::sync::Revisions;
use crate::executor::{switch, sync};
use crate::model::deployment_config::MOST_REPLICAS;
use crate::model::hold::HoldScope;
use crate::model::ids::{CommitId, ConfigKey, PodName, ProjectName, RepositoryName, RunId, ServiceName, StageName};
use crate::model::project::{Project, StageContent};
use crate::store::RunFilter;

/// So many characters of a command are logged: an event may carry much.
const LOGGED: usize = 300;
/// The most characters of a reason.
const MOST_OF_A_REASON: usize = 200;
/// The daemon as commands see it.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Commits what follows.
    pub driver: Driver,
    /// What is watched.
    pub watchers: Arc<BTreeMap<RepositoryName, Watcher>>,
    /// Deletes what nothing needs.
    pub housekeeping: Housekeeping,
}

#[async_trait]
impl Commands for Operator {
    async fn act(&self, command: Command, by: &str) -> Result<Done, Refusal> {
        let asked: String = format!("{command:?}").chars().take(LOGGED).collect();
        tracing::info!(asked, by, "asked by hand");
        match command {
            Command::Sync { repository, allow_prune, accept_rewrite, up, only_new } => {
                let allow = Allowance { rewrite: accept_rewrite, prune: allow_prune };
                let allows = allow != Allowance::default();
                if !only_new && !allows {
                    self.judge_anew(&repository).await?;
                }
                let done = self.sync(&repository, up.then_some(by)).await?;
                if allows { self.allow(&repository, &allow).await } else { Ok(done) }
            }
            Command::Latest { config, images, dry_run } => self.latest(&config, images, dry_run, by).await,
            Command::Generate(asked) => {
                let title = self.title(&asked.config).await?;
                generate(&self.driver, &title, *asked, by).await
            }
            Command::Cancel { config } => self.cancel(&config, by).await,
            Command::Retry { config } => {
                let title = self.title(&config).await?;
                let retried = by_hand::retry(&self.driver, &config, by).await.map_err(conflict)?;
                Ok(rollout(&config, retried.version, format!("{title} retried rollout {retried}")))
            }
            Command::Undo { config, to_version, dry_run } => undo(self, &config, (to_version, dry_run), by).await,
            Command::Pause { config } => self.pause(&config, by).await,
            Command::Resume { config } => self.resume(&config, by).await,
            Command::Promote { config } => self.promote(&config, by).await,
            Command::Rollback(asked) if asked.pull_request => propose(self, asked, by).await,
            Command::Rollback(asked) => rollback(self, asked, by).await,
            Command::Scale { config, replicas } => {
                let title = self.title(&config).await?;
                refuse_many(replicas)?;
                by_hand::scale(&self.driver, &config, replicas, by).await.map_err(conflict)?;
                Ok(said(format!("{title} scaled")))
            }
            Command::Deploy { run, pod, ask } => self.deploy(&run, &pod, ask).await,
            Command::Exec { config, pod, words } => self.executed(&config, &pod, &words, by).await,
            Command::Hold { scope, reason } => self.hold(scope, reason, by).await,
            Command::Release { holds, paused, dry_run } => release(self, holds, paused, dry_run, by).await,
            Command::TriggerDelivery { project, stage, service, force } => {
                let declaring = by_hand::declaring(&self.driver, &project).await?;
                let revisions = self.revisions(&declaring.ok_or_else(|| undeclared(&project))?).await?;
                let stage = self.meant(&*revisions, stage).await?;
                let (service, force) = (service.as_ref(), force.as_deref());
                self.trigger(&*revisions, Trigger { stage: &stage, service, force, by, incoming: None }).await
            }
            Command::Sequence(told) => sequences::act(self, told, by).await,
            Command::Down { repository } => self.down(&repository, by).await,
            Command::Prune { dry_run } => {
                let cleaned = self.housekeeping.clean(dry_run).await?;
                Ok(said(format!("{} {cleaned}", if dry_run { "would delete" } else { "deleted" })))
            }
        }
    }
}

impl Operator {
    pub(super) fn watcher(&self, repository: &RepositoryName) -> Result<&Watcher, Refusal> {
        let unknown = || {
            let watched = self.watchers.keys().map(RepositoryName::as_str).collect::<Vec<_>>().join(", ");
            Failure::stalled(format!("no repository `{repository}` is watched here"))
                .hint(format!("watched: {watched}"))
        };
        self.watchers.get(repository).ok_or_else(|| Refusal::Unknown(unknown()))
    }

    /// The revisions of a repository that is watched, or of the environment of a pull request.
    pub(super) async fn revisions(&self, repository: &RepositoryName) -> Result<Box<dyn Revisions>, Refusal> {
        match EnvironmentRevisions::find(&self.watchers, &*self.driver.store, repository).await? {
            Some(environment) => Ok(Box::new(environment)),
            None => Ok(Box::new(self.watcher(repository)?.watched.clone())),
        }
    }

    /// What a deployment config that is there is called.
    pub(super) async fn title(&self, config: &ConfigKey) -> Result<String, Refusal> {
        let found = self.driver.store.config(config).await?;
        found.map(|found| found.value.title()).ok_or_else(|| missing(config))
    }

    /// Has the head synced soon, and judged anew if it is refused.
    pub(in crate::control) async fn look_anew(&self, repository: &RepositoryName) -> Result<(), Refusal> {
        self.judge_anew(repository).await?;
        self.watcher(repository)?.requests.request();
        Ok(())
    }

    /// Has the next sync judge the head anew, if it is refused: what it broke may be put right elsewhere.
    async fn judge_anew(&self, repository: &RepositoryName) -> Result<(), Refusal> {
        let watched = &self.watcher(&repository.watched())?.watched;
        if watched.is_refused(&self.driver).await? {
            sync::allow(&self.driver, watched, &Allowance::default()).await.map_err(conflict)?;
        }
        Ok(())
    }

    /// Has the head, which was just synced, judged anew with what a person allows for it.
    async fn allow(&self, repository: &RepositoryName, allow: &Allowance) -> Result<Done, Refusal> {
        let state = self.driver.store.repository(repository).await?.map(|state| state.value);
        let head = state.and_then(|state| state.seen);
        let words = allow.rewrite.iter().chain(&allow.prune);
        let is_head = |word: &&CommitId| head.as_ref().is_some_and(|head| head.is_named_by(Some(word)));
        if let Some(word) = words.into_iter().find(|word| !is_head(word)) {
            return Err(Refusal::Conflict(not_the_head(repository, word, head.as_ref())));
        }
        sync::allow(&self.driver, &self.watcher(repository)?.watched, allow).await.map_err(conflict)?;
        self.sync(repository, None).await
    }

    /// `up` is who brings it up again.
    async fn sync(&self, repository: &RepositoryName, up: Option<&str>) -> Result<Done, Refusal> {
        // An environment is synced with the repository of its pull request.
        let watcher = self.watcher(&repository.watched())?;
        let came_up = match up {
            Some(by) => switch::up(&self.driver, repository, by).await?,
            None => false,
        };
        watcher.requests.request_and_wait().await;
        let state = self.driver.store.repository(repository).await?.map(|state| state.value);
        let Some(state) = state else { return Ok(said("synced".into())) };
        if let Some(problem) = watcher.watched.problem(&state) {
            return Err(Refusal::Failed(Failure::transient(problem)));
        }
        let at = state.seen.map_or_else(String::new, |seen| format!(" at {}", seen.short()));
        Ok(said(match (state.down, came_up) {
            (true, _) => format!("{repository} is down{at}: `launchway sync {repository} --up` brings it back"),
            (false, true) => format!("{repository} is up again{at}"),
            (false, false) => match at.is_empty() {
                true => "synced".to_owned(),
                false => format!("{repository} is{at}"),
            },
        }))
    }

    /// The stage that is named, or the only one.
    async fn meant(&self, revisions: &dyn Revisions, named: Option<StageName>) -> Result<StageName, Refusal> {
        if let Some(stage) = named {
            return Ok(stage);
        }
        let name = revisions.watched().name;
        let nothing = || Refusal::Conflict(Failure::stalled(format!("nothing of `{name}` was applied yet")));
        let state = self.driver.store.repository(&name).await?;
        let applied = state.and_then(|state| state.value.applied).ok_or_else(nothing)?;
        let project = revisions.at(&applied).await?.head.declared.ok().ok_or_else(nothing)?;
        match project.stages.as_slice() {
            [stage] => Ok(stage.name.clone()),
            stages => {
                let choices: Vec<String> = stages.iter().map(|stage| format!("--stage {}", stage.name)).collect();
                let failure = Failure::stalled("there is more than one stage");
                Err(Refusal::Invalid(failure.hint(format!("choose one: {}", choices.join(", ")))))
            }
        }
    }

    async fn cancel(&self, config: &ConfigKey, by: &str) -> Result<Done, Refusal> {
        let cancelled = by_hand::cancel(&self.driver, config, by).await.map_err(conflict)?;
        let Cancelled { what, run } = cancelled.ok_or_else(|| missing(config))?;
        let title = self.title(config).await.unwrap_or_else(|_| format!("deploymentconfig/{}", config.name));
        let message = format!("{title} cancelling: {what}");
        Ok(Done { message, runs: vec![run], ..Done::default() })
    }

    async fn latest(&self, config: &ConfigKey, images: Images, dry_run: bool, by: &str) -> Result<Done, Refusal> {
        let title = self.title(config).await?;
        let version = by_hand::latest(&self.driver, config, images, dry_run, by).await.map_err(conflict)?;
        Ok(match dry_run {
            true => said(format!("{title} would be rolled out as version {version} (dry run)")),
            false => rollout(config, version, format!("{title} rolled out")),
        })
    }

    async fn pause(&self, config: &ConfigKey, by: &str) -> Result<Done, Refusal> {
        let title = self.title(config).await?;
        let paused = by_hand::pause(&self.driver, config, by).await.map_err(conflict)?;
        Ok(said(format!("{} {}", qualified(&title), if paused { "paused" } else { "already paused" })))
    }

    async fn promote(&self, config: &ConfigKey, by: &str) -> Result<Done, Refusal> {
        let title = self.title(config).await?;
        let version = by_hand::promote(&self.driver, config, by).await.map_err(conflict)?;
        Ok(rollout(config, version, format!("{title} promoted #{version}")))
    }

    async fn resume(&self, config: &ConfigKey, by: &str) -> Result<Done, Refusal> {
        let title = self.title(config).await?;
        let (resumed, declaring) = by_hand::resume(&self.driver, config, by).await.map_err(conflict)?;
        if let Some(watcher) = declaring.and_then(|name| self.watchers.get(&name)) {
            watcher.requests.request();
        }
        let word = match (resumed.rollout || resumed.paused, resumed.waits) {
            (_, true) => "resumed; its rollout waits at a step of its own, until it is resumed once more",
            (true, false) => "resumed",
            (false, false) => "already resumed",
        };
        Ok(said(format!("{} {word}", qualified(&title))))
    }

    async fn deploy(&self, run: &RunId, pod: &PodName, ask: Ask) -> Result<Done, Refusal> {
        by_hand::deployer_asks(&self.driver, run, pod, ask).await.map_err(conflict)?;
        Ok(Done::default())
    }

    async fn executed(&self, config: &ConfigKey, pod: &PodName, words: &[String], by: &str) -> Result<Done, Refusal> {
        by_hand::executed(&self.driver, config, pod, words, by).await?;
        Ok(Done::default())
    }

    async fn hold(&self, scope: HoldScope, reason: String, by: &str) -> Result<Done, Refusal> {
        refuse_bad(&reason)?;
        self.refuse_unknown(&scope).await?;
        let hold = by_hand::place_hold(&self.driver, scope, reason, by).await?;
        Ok(said(format!("hold {} placed on {}", hold.id, hold.scope)))
    }

    /// Who mistypes a project, a stage or a service must not believe that it is held. A project that nothing was applied of may be
    /// held as a whole and in any stage.
    pub(super) async fn refuse_unknown(&self, scope: &HoldScope) -> Result<(), Refusal> {
        let Some(repository) = by_hand::declaring(&self.driver, &scope.project).await? else {
            return self.refuse_unknown_project(&scope.project).await;
        };
        if scope.stage.is_none() && scope.service.is_none() {
            return Ok(());
        }
        let Some(watcher) = self.watchers.get(&repository) else { return Ok(()) };
        let applied = self.driver.store.repository(&repository).await?.and_then(|state| state.value.applied);
        let Some(applied) = applied else { return Ok(()) };
        // What cannot be read, as with a lost mirror, keeps nobody from holding something.
        let Ok(Some(project)) = watcher.watched.project_at(&applied).await else { return Ok(()) };
        if let Some(stage) = &scope.stage
            && project.stage(stage).is_none()
            && !self.driver.store.applied_stages(&scope.project).await?.contains(stage)
        {
            let there = project.stages.iter().map(|stage| &stage.name);
            return Err(Refusal::Unknown(no_stage(&scope.project, stage.as_str(), there)));
        }
        self.refuse_unknown_service(scope, &project).await
    }

    /// A service is known that is declared there, is still applied, or has had a sequence. Where none is declared, events alone say
    /// which there are.
    async fn refuse_unknown_service(&self, scope: &HoldScope, project: &Project) -> Result<(), Refusal> {
        let (Some(service), store) = (&scope.service, &self.driver.store) else { return Ok(()) };
        let is_meant = |stage: &&StageContent| scope.stage.as_ref().is_none_or(|meant| *meant == stage.name);
        let stages = project.stages.iter().filter(is_meant);
        let declared: BTreeSet<&ServiceName> = stages.flat_map(|stage| stage.objects.services()).collect();
        if declared.is_empty() || declared.contains(service) {
            return Ok(());
        }
        let mut applied = store.configs(Some(&scope.project), scope.stage.as_ref()).await?.found.into_iter();
        let filter = RunFilter {
            project: Some(scope.project.clone()),
            stage: scope.stage.clone(),
            service: Some(service.to_string()),
            limit: 1,
            ..RunFilter::default()
        };
        if applied.any(|config| config.value.service == *service) || !store.runs(&filter).await?.found.is_empty() {
            return Ok(());
        }
        let place =
            scope.stage.as_ref().map_or_else(|| format!("project `{}`", scope.project), |it| format!("stage `{it}`"));
        let declared: Vec<&str> = declared.into_iter().map(ServiceName::as_str).collect();
        let unknown = Failure::stalled(format!("{place} has no service `{service}`"));
        Err(Refusal::Unknown(unknown.hint(format!("its services: {}", declared.join(", ")))))
    }

    /// As long as nobody knows what some watched repository declares, it may be that one's.
    async fn refuse_unknown_project(&self, project: &ProjectName) -> Result<(), Refusal> {
        let states = self.driver.store.repositories().await?.found;
        let mut projects = Vec::new();
        for name in self.watchers.keys() {
            let state = states.iter().find(|state| &state.value.name == name);
            let Some(declared) = state.and_then(|state| state.value.project.as_ref()) else { return Ok(()) };
            projects.push(declared.as_str());
        }
        let unknown = Failure::stalled(format!("no repository declares project `{project}`"));
        Err(Refusal::Unknown(unknown.hint(format!("projects: {}", projects.join(", ")))))
    }

    pub(super) async fn trigger(&self, revisions: &dyn Revisions, asked: Trigger<'_>) -> Result<Done, Refusal> {
        asked.force.map_or(Ok(()), refuse_bad)?;
        let runs = sync::trigger(&self.driver, revisions, asked).await.map_err(conflict)?;
        let message = match runs.len() {
            0 => "nothing differs in this stage that is not under way already".to_owned(),
            started => format!("started {started}"),
        };
        Ok(Done { message, runs, ..Done::default() })
    }

    /// Of any repository of the state folder, also of one that is not watched any more.
    async fn down(&self, repository: &RepositoryName, by: &str) -> Result<Done, Refusal> {
        if self.driver.store.repository(repository).await?.is_none() {
            let unknown = Failure::stalled(format!("nothing is known of repository `{repository}`"));
            return Err(Refusal::Unknown(unknown.hint("`launchway get repositories` lists what is known")));
        }
        let stopped = switch::down(&self.driver, repository, by).await?;
        let back = match self.watchers.contains_key(&repository.watched()) {
            true => &format!("launchway sync {repository} --up"),
            false => "launchway up",
        };
        Ok(said(by_hand::is_down(repository, stopped, back)))
    }
}

pub(in crate::control) fn conflict(failure: Failure) -> Refusal {
    match (failure.class(), failure.fault()) {
        (Class::Stalled, None) => Refusal::Conflict(failure),
        (Class::Stalled, Some(Fault::Malformed)) => Refusal::Invalid(failure),
        (Class::Stalled, Some(Fault::Missing)) => Refusal::Unknown(failure),
        (Class::Transient | Class::Waiting, _) => Refusal::Failed(failure),
    }
}

/// Only the head is judged, so that only it can be allowed something.
fn not_the_head(repository: &RepositoryName, word: &CommitId, head: Option<&CommitId>) -> Failure {
    let Some(head) = head else {
        return Failure::stalled(format!("nothing is allowed: `{repository}` was not read yet"));
    };
    let message =
        format!("nothing is allowed: {} is not the head of `{repository}`, which is {}", word.short(), head.short());
    Failure::stalled(message)
        .hint(format!("push it first; `launchway status {}` says what the head needs", head.short()))
}

/// A deployment config as `oc` names it where it only changes it.
fn qualified(title: &str) -> String {
    title.replacen("deploymentconfig/", "deploymentconfig.apps.openshift.io/", 1)
}

fn missing(config: &ConfigKey) -> Refusal {
    let message = format!("deployment config `{}` does not exist in stage {}", config.name, config.stage);
    Refusal::Unknown(Failure::stalled(message))
}

pub(super) fn undeclared(project: &ProjectName) -> Refusal {
    Refusal::Unknown(Failure::stalled(format!("no repository declares project `{project}`")))
}

/// A reason is read by others, in tables and on commits.
pub(super) fn refuse_bad(reason: &str) -> Result<(), Refusal> {
    let invalid = |message| Err(Refusal::Invalid(Failure::stalled(message)));
    match reason.chars().count() {
        _ if reason.trim().is_empty() => invalid("a reason must say something".to_owned()),
        length if length > MOST_OF_A_REASON => {
            invalid(format!("a reason has at most {MOST_OF_A_REASON} characters, not {length}"))
        }
        _ => Ok(()),
    }
}

fn refuse_many(replicas: u32) -> Result<(), Refusal> {
    if replicas <= MOST_REPLICAS {
        return Ok(());
    }
    let message = format!("{replicas} replicas are more than the {MOST_REPLICAS} that a deployment config may have");
    Err(Refusal::Invalid(Failure::stalled(message).hint("several deployment configs may share a service")))
}

pub(super) fn rollout(config: &ConfigKey, version: u32, message: String) -> Done {
    Done { message, runs: vec![config.deployment(version)], ..Done::default() }
}

pub(super) fn said(message: String) -> Done {
    Done { message, ..Done::default() }
}
