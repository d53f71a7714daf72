//! From inputs to one transaction: every run that is told something steps, what it decides is applied to what is
//! remembered, and runs that share a slot are told whose turn it is. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::engine::deployment::{machine, ownership};
use crate::engine::{self, sequence::slot};
use crate::error::{Context, Result};
use crate::executor::pending::Pending;
use crate::model::action::{Action, Decided, Record};
use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::{CommitId, ConfigKey, RepositoryName, RunId, ServiceKey, WriterName};
use crate::model::object::{Kind, Object};
use crate::model::outcome::Verdict;
use crate::model::plan::{Change, Decision};
use crate::model::run::{DeploymentRun, DeploymentStep, Phase, Run, SequenceRun};
use crate::model::state::{Attempt, ConfigState, ObjectState, Progress, Target, Version, Versioned, Wanted, spec_of};
use crate::model::time::Timestamp;
use crate::store::{RunFilter, Store, Transaction, Write};
use crate::telemetry::RunKind;

/// Something that starts a transition.
#[derive(Clone, Debug)]
pub enum Input {
    /// A run is told a fact.
    Tell(RunId, Event),
    /// A new sequence run, queued.
    Start(Box<SequenceRun>),
    /// Look at a slot again: a hold came or went.
    Examine(ServiceKey),
    /// The number of replicas is changed by hand.
    Scale(ConfigKey, u32),
    /// Nothing more is to run for a deployment config, which stays declared.
    Quiesce(ConfigKey),
    /// What served is to serve again.
    Resume(ConfigKey),
    /// The last pod of a deployment config that vanished is gone: so is its record, unless it has come back.
    Forget(ConfigKey),
    /// A repository is taken down (true) or brought up again.
    Down(RepositoryName, bool),
    /// A revision has news for whoever reads its statuses.
    Report(RepositoryName, CommitId),
    /// Why a writer's statuses do not reach a repository's commits, or that they do.
    StatusProblem(RepositoryName, WriterName, Option<String>),
    /// Written as it is, in the same transaction.
    Write(Box<Write>),
}

/// What a committed transition touched: who has to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Deployment configs whose wanted state may have changed.
    pub configs: BTreeSet<ConfigKey>,
    /// Whether what services should answer may have changed.
    pub objects: bool,
    /// What runs are new.
    pub begun: Vec<RunKind>,
    /// What runs have ended, and how.
    pub ended: Vec<(RunKind, Verdict)>,
    /// Revisions whose statuses may have changed.
    pub reports: BTreeSet<(RepositoryName, CommitId)>,
}

/// A transition being worked out.
struct Transition<'a> {
    store: &'a dyn Store,
    now: Timestamp,
    pending: Pending<'a>,
    slots: BTreeSet<ServiceKey>,
    told: VecDeque<(RunId, Event)>,
    holds: Option<Vec<Hold>>,
    writes: Vec<Write>,
    /// Whether a repository went down or came up, and its services with it.
    services: bool,
    reports: BTreeSet<(RepositoryName, CommitId)>,
}

/// Works out the transaction for some inputs.
///
/// # Errors
/// If the store cannot be read.
pub async fn work_out(store: &dyn Store, now: Timestamp, inputs: &[Input]) -> Result<(Transaction, Touched)> {
    let mut transition = Transition::new(store, now);
    for input in inputs {
        transition.take(input).await?;
    }
    transition.settle().await?;
    Ok(transition.finish())
}

impl<'a> Transition<'a> {
    fn new(store: &'a dyn Store, now: Timestamp) -> Self {
        Self {
            store,
            now,
            pending: Pending::new(store),
            slots: BTreeSet::new(),
            told: VecDeque::new(),
            holds: None,
            writes: Vec::new(),
            services: false,
            reports: BTreeSet::new(),
        }
    }

    async fn take(&mut self, input: &Input) -> Result<()> {
        match input {
            Input::Tell(run, event) => self.told.push_back((run.clone(), event.clone())),
            Input::Start(run) => self.insert(Run::Sequence(run.clone())),
            Input::Examine(service) => {
                self.slots.insert(service.clone());
            }
            Input::Scale(config, replicas) => {
                if let Some(state) = self.pending.config_mut(config).await? {
                    state.scaled = Some(*replicas);
                    state.wanted.replicas = *replicas;
                }
            }
            Input::Quiesce(config) => {
                if let Some(state) = self.pending.config_mut(config).await? {
                    state.wanted = state.wanted.nothing();
                }
            }
            Input::Resume(config) => self.resume(config).await?,
            Input::Forget(config) => {
                let removed = self.store.config(config).await?.filter(|state| state.value.removed);
                let key = |state: Versioned<ConfigState>| Versioned { version: state.version, value: config.clone() };
                self.writes.extend(removed.map(|state| Write::RemoveConfig(key(state))));
            }
            Input::Down(repository, down) => self.down(repository, *down).await?,
            Input::Report(repository, commit) => drop(self.reports.insert((repository.clone(), commit.clone()))),
            Input::StatusProblem(repository, writer, problem) => {
                if let Some(mut stored) = self.store.repository(repository).await?
                    && stored.value.set_status_problem(writer, problem.as_ref())
                {
                    self.writes.push(Write::Repository(Box::new(stored)));
                }
            }
            Input::Write(write) => self.writes.push((**write).clone()),
        }
        Ok(())
    }

    /// A look may write the same record at any time, so that it is read here, at every try.
    async fn down(&mut self, repository: &RepositoryName, down: bool) -> Result<()> {
        let Some(mut stored) = self.store.repository(repository).await? else { return Ok(()) };
        stored.value.down = down;
        stored.value.seen = None; // once it is up again, the head is planned anew
        self.writes.push(Write::Repository(Box::new(stored)));
        self.services = true; // its services go and come with it
        Ok(())
    }

    async fn resume(&mut self, config: &ConfigKey) -> Result<()> {
        let Some(state) = self.pending.config_mut(config).await? else { return Ok(()) };
        let Some(serving) = state.serving.clone().filter(|_| !state.removed) else { return Ok(()) };
        let spec = spec_of(&serving.object).or_stalled(|| format!("cannot read the stored config `{config}`"))?;
        state.wanted = Wanted {
            generation: state.wanted.generation + 1,
            targets: BTreeMap::from([(serving.number, Target::ALL)]),
            replicas: state.replicas(&spec),
            min_ready_seconds: spec.min_ready_seconds,
            ..Wanted::default()
        };
        Ok(())
    }

    /// Tells facts, and what they lead to, until nobody has anything to say.
    async fn settle(&mut self) -> Result<()> {
        loop {
            while let Some((run, event)) = self.told.pop_front() {
                self.tell(&run, &event).await?;
            }
            let Some(service) = self.slots.pop_first() else { return Ok(()) };
            self.examine(&service).await?;
        }
    }

    async fn tell(&mut self, id: &RunId, event: &Event) -> Result<()> {
        let Some(mut run) = self.pending.run(id).await? else { return Ok(()) };
        if let (Run::Sequence(sequence), Event::Admitted) = (&mut run, event) {
            for change in &mut sequence.changes {
                *change = self.pending.decide_again(&sequence.service, change).await?;
            }
        }
        let (next, decided) = engine::step(&run, event, self.now);
        if next == run && decided == Decided::default() {
            return Ok(());
        }
        self.writes.push(Write::Event { run: id.clone(), at: self.now, event: Box::new(event.clone()) });
        self.insert(next);
        self.apply(id, decided).await
    }

    /// Whose turn it is in a slot.
    async fn examine(&mut self, service: &ServiceKey) -> Result<()> {
        let mut open: BTreeMap<RunId, SequenceRun> = BTreeMap::new();
        for stored in self.store.slot(service).await? {
            if let Some(Run::Sequence(run)) = self.pending.run(stored.value.id()).await? {
                open.insert(run.id.clone(), *run);
            }
        }
        for run in self.pending.runs() {
            if let Run::Sequence(run) = run
                && &run.service == service
            {
                open.insert(run.id.clone(), (**run).clone());
            }
        }
        let runs: Vec<&SequenceRun> = open.values().filter(|run| run.ended_at.is_none()).collect();
        let holds = self.holds().await?;
        self.told.extend(slot::decide(&runs, &holds));
        Ok(())
    }

    async fn apply(&mut self, by: &RunId, decided: Decided) -> Result<()> {
        for record in decided.records {
            self.record(record).await?;
        }
        self.writes.extend(decided.actions.into_iter().map(|action| asked(by, action, self.now)));
        Ok(())
    }

    async fn record(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Tell { run, event } => self.told.push_back((run, event)),
            Record::Apply { by, change } => self.apply_change(&by, &change).await?,
            Record::StartDeployment { by, change } => self.start_deployment(&by, &change).await?,
            Record::Own { config, by } => self.own(&config, &by).await?,
            Record::Want { config, by, generation, targets, fallback, pace } => {
                self.want(&config, by, fallback, Wanted { generation, targets, pace, ..Wanted::default() }).await?;
            }
            Record::Settle { config, by, version, verdict } => {
                self.settle_attempt(&config, &by, version, verdict).await?;
            }
            Record::Passed { service, content, commit } => {
                self.writes.push(Write::Passed { service, content, commit, at: self.now });
            }
        }
        Ok(())
    }

    async fn own(&mut self, key: &ConfigKey, by: &RunId) -> Result<()> {
        if let Some(state) = self.pending.config_mut(key).await? {
            self.told.extend(ownership::take(&mut state.wanted, by));
        }
        Ok(())
    }

    async fn want(&mut self, key: &ConfigKey, by: RunId, fallback: Option<u32>, wanted: Wanted) -> Result<()> {
        if let Some(refusal) = ownership::refusal(self.pending.config(key).await?, &by) {
            self.told.push_back((by, refusal));
            return Ok(());
        }
        let Some(state) = self.pending.config_mut(key).await? else { return Ok(()) };
        let spec = state.spec().or_stalled(|| format!("cannot read the stored config `{key}`"))?;
        let (replicas, min_ready_seconds) = (state.replicas(&spec), spec.min_ready_seconds);
        let fallback = fallback.map(|version| state.wanted.fall_back_to(version));
        state.wanted = Wanted { owner: Some(by), replicas, fallback, min_ready_seconds, ..wanted };
        Ok(())
    }

    /// A change that needs no deployment.
    async fn apply_change(&mut self, by: &RunId, change: &Change) -> Result<()> {
        let Some(Run::Sequence(run)) = self.pending.run(by).await? else { return Ok(()) };
        if change.key.kind == Kind::DeploymentConfig {
            self.apply_config_change(&run, change).await
        } else {
            self.apply_object_change(&run, change).await
        }
    }

    async fn apply_config_change(&mut self, run: &SequenceRun, change: &Change) -> Result<()> {
        let key = run.service.config(&change.key.name);
        match (change.decision, &change.object) {
            (Decision::Delete, _) => {
                if let Some(state) = self.pending.config_mut(&key).await? {
                    state.removed = true;
                    state.serving = None;
                    state.attempted = None;
                    state.scaled = None;
                    state.wanted = state.wanted.nothing();
                }
            }
            (Decision::Create | Decision::Update | Decision::Scale, Some(object)) => {
                let state = self.pending.config_or_new(&key, run, change).await?;
                let spec = spec_of(object).or_stalled(|| format!("cannot read `{}`", object.key))?;
                state.declare(object, &spec);
                state.attempted = None;
                state.wanted.replicas = state.replicas(&spec);
                state.wanted.min_ready_seconds = spec.min_ready_seconds;
            }
            _ => {}
        }
        Ok(())
    }

    async fn apply_object_change(&mut self, run: &SequenceRun, change: &Change) -> Result<()> {
        let declared = match (change.decision, &change.object) {
            (Decision::Delete, _) => None,
            (Decision::Create | Decision::Update, Some(object)) => Some(object.clone()),
            _ => return Ok(()),
        };
        let ServiceKey { project, stage, .. } = run.service.clone();
        let (namespace, repository) = (run.namespace.clone(), run.repository.clone());
        let state = |object| ObjectState { project, stage, namespace, repository, object };
        self.pending.set_object(&run.service, &change.key, declared.map(state)).await
    }

    async fn start_deployment(&mut self, by: &RunId, change: &Change) -> Result<()> {
        let Some(Run::Sequence(parent)) = self.pending.run(by).await? else { return Ok(()) };
        let Some(object) = change.object.clone() else { return Ok(()) };
        let key = parent.service.config(&change.key.name);
        let mut spec = spec_of(&object).or_stalled(|| format!("cannot read `{}`", object.key))?;
        let newest = self.newest_version(&key).await?;
        let state = self.pending.config_or_new(&key, &parent, change).await?;
        let by_hand = change.is_by_hand();
        let serves = state.serving.as_ref().filter(|serving| serving.object.digest == object.digest && !by_hand);
        if let Some(serving) = serves {
            let (deployment, message) = (key.deployment(serving.number), "serves already".to_owned());
            let started = Event::DeploymentStarted { config: key.name.clone(), deployment: deployment.clone() };
            let ended = Event::DeploymentEnded { deployment, verdict: Verdict::Success, message };
            self.told.extend([started, ended].map(|event| (by.clone(), event)));
            return Ok(());
        }
        let number = change.retry.unwrap_or(state.latest_version.max(newest) + 1);
        let version = Version { number, commit: parent.commit.clone(), object: object.clone() };
        let previous = state.serving.as_ref().map(|serving| serving.number).filter(|serving| *serving != number);
        state.latest_version = state.latest_version.max(number);
        state.attempted = Some(Attempt { version, verdict: None });
        state.declare(&object, &spec);
        spec.replicas = state.replicas(&spec);
        let fresh = deployment_run(&parent, key, number, change, object, spec, previous, self.now);
        self.begin(by, fresh).await
    }

    /// Inserts a deployment run, or begins a new attempt at one that failed.
    async fn begin(&mut self, by: &RunId, mut fresh: DeploymentRun) -> Result<()> {
        let id = fresh.id.clone();
        // Counted on, so that what was observed before can never pass for an answer to what this run wants.
        fresh.generation = self.pending.config(&fresh.config).await?.map_or(0, |state| state.wanted.generation);
        if let Some(Run::Deployment(earlier)) = self.pending.run(&id).await? {
            fresh.attempt = earlier.attempt + 1;
            fresh.hooks = earlier.hooks;
        }
        let (run, decided) = machine::begin(&fresh, self.now);
        let started = Event::DeploymentStarted { config: run.config.name.clone(), deployment: id.clone() };
        self.insert(Run::Deployment(Box::new(run)));
        self.told.push_back((by.clone(), started));
        Box::pin(self.apply(&id, decided)).await
    }

    /// The highest version that history knows of: a deployment config that comes back goes on counting.
    async fn newest_version(&mut self, key: &ConfigKey) -> Result<u32> {
        if self.pending.config(key).await?.is_some() {
            return Ok(0);
        }
        let filter = RunFilter {
            project: Some(key.project.clone()),
            stage: Some(key.stage.clone()),
            config: Some(key.name.clone()),
            sequences: Some(false),
            limit: 1,
            ..RunFilter::default()
        };
        let newest = self.store.runs(&filter).await?.into_iter().next().map(|run| run.value);
        Ok(match newest {
            Some(Run::Deployment(run)) => run.version,
            _ => 0,
        })
    }

    async fn settle_attempt(&mut self, key: &ConfigKey, by: &RunId, number: u32, verdict: Verdict) -> Result<()> {
        let Some(state) = self.pending.config_mut(key).await? else { return Ok(()) };
        ownership::give_back(&mut state.wanted, by);
        let Some(attempt) = state.attempted.as_mut().filter(|attempt| attempt.version.number == number) else {
            return Ok(());
        };
        if verdict == Verdict::Success {
            state.serving = Some(attempt.version.clone());
            state.attempted = None;
        } else {
            attempt.verdict = Some(verdict);
        }
        Ok(())
    }

    fn insert(&mut self, run: Run) {
        self.note(&run);
        self.pending.insert(run);
    }

    fn note(&mut self, run: &Run) {
        if let Run::Sequence(sequence) = run {
            self.slots.insert(sequence.service.clone());
        }
    }

    async fn holds(&mut self) -> Result<Vec<Hold>> {
        if self.holds.is_none() {
            let mut holds = self.store.holds().await?;
            for write in &self.writes {
                match write {
                    Write::Hold(hold) => holds.push((**hold).clone()),
                    Write::Release(id) => holds.retain(|hold| &hold.id != id),
                    _ => {}
                }
            }
            self.holds = Some(holds);
        }
        Ok(self.holds.clone().unwrap_or_default())
    }

    fn finish(self) -> (Transaction, Touched) {
        let mut touched = Touched { objects: self.services, reports: self.reports, ..Touched::default() };
        let Self { pending, mut writes, .. } = self;
        for write in pending.into_writes() {
            match &write {
                Write::Run(run) => {
                    let (kind, verdict) = kind_and_verdict(&run.value);
                    touched.begun.extend((run.version == 0).then_some(kind));
                    // A run changes for the last time when it ends.
                    touched.ended.extend(verdict.map(|verdict| (kind, verdict)));
                    let (repository, commit) = run.value.revision();
                    touched.reports.insert((repository.clone(), commit.clone()));
                }
                Write::Config(config) => drop(touched.configs.insert(config.value.key.clone())),
                _ => touched.objects = true,
            }
            writes.push(write);
        }
        (Transaction { writes }, touched)
    }
}

/// An action as it enters the outbox.
fn asked(run: &RunId, action: Action, at: Timestamp) -> Write {
    let run = run.clone();
    match action {
        Action::ClearTimer { .. } => Write::Withdraw { run, key: action.key() },
        Action::SetTimer { due, .. } => Write::Ask { run, action: Box::new(action), due, at },
        _ => Write::Ask { run, action: Box::new(action), due: at, at },
    }
}

fn kind_and_verdict(run: &Run) -> (RunKind, Option<Verdict>) {
    match run {
        Run::Sequence(run) => (RunKind::Sequence, run.verdict),
        Run::Deployment(run) => {
            let failed = run.failure.as_ref().map_or(Verdict::Success, |failure| failure.verdict);
            (RunKind::Deployment, run.ended_at.map(|_| failed))
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "every field of the record comes from somewhere else")]
fn deployment_run(
    parent: &SequenceRun,
    config: ConfigKey,
    version: u32,
    change: &Change,
    object: Arc<Object>,
    spec: crate::model::deployment_config::DeploymentConfigSpec,
    previous: Option<u32>,
    now: Timestamp,
) -> DeploymentRun {
    DeploymentRun {
        id: config.deployment(version),
        service: parent.service.service.clone(),
        namespace: parent.namespace.clone(),
        repository: parent.repository.clone(),
        commit: parent.commit.clone(),
        parent: parent.id.clone(),
        config,
        version,
        attempt: 1,
        cause: change.cause.clone(),
        object,
        spec,
        previous,
        phase: Phase::New,
        step: DeploymentStep::Prepare,
        hooks: Vec::new(),
        generation: 0,
        progress: Progress::default(),
        problem: String::new(),
        failure: None,
        created_at: now,
        ended_at: None,
        message: String::new(),
    }
}
