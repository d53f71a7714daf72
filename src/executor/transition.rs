//! From inputs to one transaction: every run that is told something steps, what it decides is applied to what is
//! remembered, and runs that share a slot are told whose turn it is. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::engine::{self, deployment::machine, sequence::slot};
use crate::error::{Context, Result};
use crate::model::action::{Action, Decided, Record};
use crate::model::event::Event;
use crate::model::hold::Hold;
use crate::model::ids::{CommitId, ConfigKey, RepositoryName, RunId, ServiceKey};
use crate::model::object::{Kind, ObjectKey};
use crate::model::outcome::Verdict;
use crate::model::plan::{Change, Decision};
use crate::model::run::{DeploymentRun, DeploymentStep, Phase, Run, SequenceRun};
use crate::model::state::{Attempt, ConfigState, ObjectState, Progress, Version, Versioned, Wanted, spec_of};
use crate::model::time::Timestamp;
use crate::plan::{build::object_change, config_change};
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
    /// Written as it is, in the same transaction.
    Write(Box<Write>),
}

/// What a committed transition touched: who has to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Runs that changed.
    pub runs: Vec<RunId>,
    /// Deployment configs whose wanted state may have changed.
    pub configs: BTreeSet<ConfigKey>,
    /// Whether what services should answer may have changed.
    pub objects: bool,
    /// What of `runs` is new.
    pub begun: Vec<RunKind>,
    /// What of `runs` has ended, and how.
    pub ended: Vec<(RunKind, Verdict)>,
}

/// The run in whose name statuses are asked for: they belong to a revision, not to one run.
pub const REPORT: &str = "report";

/// A transition being worked out: what was read, and what it has become.
pub struct Transition<'a> {
    store: &'a dyn Store,
    now: Timestamp,
    runs: BTreeMap<RunId, Versioned<Run>>,
    configs: BTreeMap<ConfigKey, Versioned<ConfigState>>,
    changed_runs: BTreeSet<RunId>,
    changed_configs: BTreeSet<ConfigKey>,
    slots: BTreeSet<ServiceKey>,
    told: VecDeque<(RunId, Event)>,
    holds: Option<Vec<Hold>>,
    writes: Vec<Write>,
    objects: bool,
}

impl std::fmt::Debug for Transition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transition").field("runs", &self.changed_runs).finish_non_exhaustive()
    }
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
            runs: BTreeMap::new(),
            configs: BTreeMap::new(),
            changed_runs: BTreeSet::new(),
            changed_configs: BTreeSet::new(),
            slots: BTreeSet::new(),
            told: VecDeque::new(),
            holds: None,
            writes: Vec::new(),
            objects: false,
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
                if let Some(state) = self.config(config).await? {
                    state.wanted.replicas = *replicas;
                }
            }
            Input::Quiesce(config) => {
                if let Some(state) = self.config(config).await? {
                    state.wanted = Wanted { generation: state.wanted.generation + 1, ..Wanted::default() };
                }
            }
            Input::Resume(config) => self.resume(config).await?,
            Input::Forget(config) => {
                let removed = self.store.config(config).await?.filter(|state| state.value.removed);
                let key = |state: Versioned<ConfigState>| Versioned { version: state.version, value: config.clone() };
                self.writes.extend(removed.map(|state| Write::RemoveConfig(key(state))));
            }
            Input::Down(repository, down) => self.down(repository, *down).await?,
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
        self.objects = true; // its services go and come with it
        Ok(())
    }

    async fn resume(&mut self, config: &ConfigKey) -> Result<()> {
        let Some(state) = self.config(config).await? else { return Ok(()) };
        let Some(serving) = state.serving.clone().filter(|_| !state.removed) else { return Ok(()) };
        let spec = spec_of(&serving.object).or_stalled(|| format!("cannot read the stored config `{config}`"))?;
        state.wanted = Wanted {
            generation: state.wanted.generation + 1,
            version: Some(serving.number),
            replicas: spec.replicas,
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
        let Some(mut run) = self.run(id).await? else { return Ok(()) };
        if let (Run::Sequence(sequence), Event::Admitted) = (&mut run, event) {
            self.decide_again(sequence).await?;
        }
        let (next, decided) = engine::step(&run, event, self.now);
        if next == run && decided == Decided::default() {
            return Ok(());
        }
        self.writes.push(Write::Event { run: id.clone(), at: self.now, event: Box::new(event.clone()) });
        self.change(next);
        self.apply(id, decided).await
    }

    /// What a run was to do when it was queued is decided on what is applied now that its turn has come.
    async fn decide_again(&mut self, run: &mut SequenceRun) -> Result<()> {
        for index in 0..run.changes.len() {
            let change = &run.changes[index];
            let Some(object) = change.object.clone().filter(|_| !change.is_by_hand()) else { continue };
            run.changes[index] = if object.key.kind == Kind::DeploymentConfig {
                let key = config_key(run, &object.key);
                let stored = self.store.config(&key).await?;
                let state = self.configs.get(&key).or(stored.as_ref());
                config_change::decide(&object, state.map(|state| &state.value))
            } else {
                let ServiceKey { project, stage, .. } = &run.service;
                let stored = self.store.object(project, stage, &object.key).await?;
                object_change(&object, stored.as_ref().map(|state| &state.value))
            };
        }
        Ok(())
    }

    /// Whose turn it is in a slot.
    async fn examine(&mut self, service: &ServiceKey) -> Result<()> {
        let mut open: BTreeMap<RunId, SequenceRun> = BTreeMap::new();
        for stored in self.store.slot(service).await? {
            if let Some(Run::Sequence(run)) = self.run(stored.value.id()).await? {
                open.insert(run.id.clone(), *run);
            }
        }
        for Versioned { value, .. } in self.runs.values() {
            if let Run::Sequence(run) = value
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
        for action in decided.actions {
            self.ask(by, action);
        }
        Ok(())
    }

    fn ask(&mut self, run: &RunId, action: Action) {
        let (run, at) = (run.clone(), self.now);
        self.writes.push(match action {
            Action::ClearTimer { .. } => Write::Withdraw { run, key: action.key() },
            Action::SetTimer { due, .. } => Write::Ask { run, action: Box::new(action), due, at },
            _ => Write::Ask { run, action: Box::new(action), due: at, at },
        });
    }

    async fn record(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Tell { run, event } => self.told.push_back((run, event)),
            Record::Apply { by, change } => self.apply_change(&by, &change).await?,
            Record::StartDeployment { by, change } => self.start_deployment(&by, &change).await?,
            Record::Want { config, owner, generation, version, replicas, pace } => {
                let down = self.is_down(&config).await?;
                if let Some(state) = self.config(&config).await? {
                    let spec = state.spec().or_stalled(|| format!("cannot read the stored config `{config}`"))?;
                    let version = version.filter(|_| !down);
                    let replicas = replicas.unwrap_or(spec.replicas);
                    let min_ready_seconds = spec.min_ready_seconds;
                    state.wanted = Wanted { generation, owner, version, replicas, pace, min_ready_seconds };
                }
            }
            Record::Settle { config, version, verdict } => self.settle_attempt(&config, version, verdict).await?,
            Record::Passed { service, content, commit } => {
                self.writes.push(Write::Passed { service, content, commit, at: self.now });
            }
        }
        Ok(())
    }

    /// Whether a person took the repository down that declares a deployment config.
    async fn is_down(&mut self, config: &ConfigKey) -> Result<bool> {
        let Some(repository) = self.config(config).await?.map(|state| state.repository.clone()) else {
            return Ok(false);
        };
        let now = self.writes.iter().find_map(|write| match write {
            Write::Repository(state) if state.value.name == repository => Some(state.value.down),
            _ => None,
        });
        if let Some(down) = now {
            return Ok(down);
        }
        Ok(self.store.repository(&repository).await?.is_some_and(|state| state.value.down))
    }

    /// A change that needs no deployment.
    async fn apply_change(&mut self, by: &RunId, change: &Change) -> Result<()> {
        let Some(Run::Sequence(run)) = self.run(by).await? else { return Ok(()) };
        if change.key.kind == Kind::DeploymentConfig {
            self.apply_config_change(&run, change).await
        } else {
            self.apply_object_change(&run, change).await
        }
    }

    async fn apply_config_change(&mut self, run: &SequenceRun, change: &Change) -> Result<()> {
        let key = config_key(run, &change.key);
        match (change.decision, &change.object) {
            (Decision::Delete, _) => {
                if let Some(state) = self.config(&key).await? {
                    state.removed = true;
                    state.serving = None;
                    state.attempted = None;
                    state.wanted = Wanted { generation: state.wanted.generation + 1, ..Wanted::default() };
                }
            }
            (Decision::Create | Decision::Update | Decision::Scale, Some(object)) => {
                let state = self.config_or_new(&key, run, change).await?;
                let spec = spec_of(object).or_stalled(|| format!("cannot read `{}`", object.key))?;
                if state.wanted.version.is_some() {
                    state.wanted.replicas = spec.replicas;
                    state.wanted.min_ready_seconds = spec.min_ready_seconds;
                }
                state.attempted = None;
                state.removed = false;
                state.service = object.service.clone();
                state.object = object.clone();
            }
            _ => {}
        }
        Ok(())
    }

    async fn apply_object_change(&mut self, run: &SequenceRun, change: &Change) -> Result<()> {
        let (project, stage) = (&run.service.project, &run.service.stage);
        let stored = self.store.object(project, stage, &change.key).await?;
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        match (change.decision, &change.object) {
            (Decision::Delete, _) if version > 0 => self.writes.push(Write::RemoveObject {
                project: project.clone(),
                stage: stage.clone(),
                key: Versioned { version, value: change.key.clone() },
            }),
            (Decision::Create | Decision::Update, Some(object)) => {
                let value = ObjectState {
                    project: project.clone(),
                    stage: stage.clone(),
                    namespace: run.namespace.clone(),
                    repository: run.repository.clone(),
                    object: object.clone(),
                };
                self.writes.push(Write::Object(Box::new(Versioned { version, value })));
            }
            _ => return Ok(()),
        }
        self.objects = true;
        Ok(())
    }

    async fn start_deployment(&mut self, by: &RunId, change: &Change) -> Result<()> {
        let Some(Run::Sequence(parent)) = self.run(by).await? else { return Ok(()) };
        let Some(object) = change.object.clone() else { return Ok(()) };
        let key = config_key(&parent, &change.key);
        let spec = spec_of(&object).or_stalled(|| format!("cannot read `{}`", object.key))?;
        let newest = self.newest_version(&key).await?;
        let state = self.config_or_new(&key, &parent, change).await?;
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
        state.service = object.service.clone();
        state.object = object.clone();
        state.removed = false;
        let fresh = deployment_run(&parent, key, number, change, object, spec, previous, self.now);
        self.begin(by, fresh).await
    }

    /// Inserts a deployment run, or begins a new attempt at one that failed.
    async fn begin(&mut self, by: &RunId, mut fresh: DeploymentRun) -> Result<()> {
        let id = fresh.id.clone();
        if let Some(Run::Deployment(earlier)) = self.run(&id).await? {
            fresh.attempt = earlier.attempt + 1;
            fresh.generation = earlier.generation;
            fresh.hooks = earlier.hooks;
        }
        let (run, decided) = machine::begin(&fresh, self.now);
        let started = Event::DeploymentStarted { config: run.config.name.clone(), deployment: id.clone() };
        self.insert(Run::Deployment(Box::new(run)));
        self.told.push_back((by.clone(), started));
        Box::pin(self.apply(&id, decided)).await
    }

    /// The highest version that history knows of: a deployment config that comes back goes on counting.
    async fn newest_version(&self, key: &ConfigKey) -> Result<u32> {
        if self.configs.contains_key(key) || self.store.config(key).await?.is_some() {
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

    async fn settle_attempt(&mut self, key: &ConfigKey, number: u32, verdict: Verdict) -> Result<()> {
        let Some(state) = self.config(key).await? else { return Ok(()) };
        state.wanted.owner = None;
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

    async fn run(&mut self, id: &RunId) -> Result<Option<Run>> {
        if !self.runs.contains_key(id)
            && let Some(stored) = self.store.run(id).await?
        {
            self.runs.insert(id.clone(), stored);
        }
        Ok(self.runs.get(id).map(|run| run.value.clone()))
    }

    fn insert(&mut self, run: Run) {
        let id = run.id().clone();
        let version = self.runs.get(&id).map_or(0, |stored| stored.version);
        self.runs.insert(id, Versioned { version, value: run.clone() });
        self.note(&run);
    }

    fn change(&mut self, run: Run) {
        if let Some(stored) = self.runs.get_mut(run.id()) {
            stored.value = run.clone();
            self.note(&run);
        }
    }

    fn note(&mut self, run: &Run) {
        self.changed_runs.insert(run.id().clone());
        if let Run::Sequence(sequence) = run {
            self.slots.insert(sequence.service.clone());
        }
    }

    /// A deployment config's state, to be changed.
    async fn config(&mut self, key: &ConfigKey) -> Result<Option<&mut ConfigState>> {
        if !self.configs.contains_key(key)
            && let Some(stored) = self.store.config(key).await?
        {
            self.configs.insert(key.clone(), stored);
        }
        let state = self.configs.get_mut(key).map(|state| &mut state.value);
        if state.is_some() {
            self.changed_configs.insert(key.clone());
        }
        Ok(state)
    }

    async fn config_or_new(&mut self, key: &ConfigKey, run: &SequenceRun, change: &Change) -> Result<&mut ConfigState> {
        if self.config(key).await?.is_none()
            && let Some(object) = &change.object
        {
            let value = ConfigState {
                key: key.clone(),
                service: object.service.clone(),
                namespace: run.namespace.clone(),
                repository: run.repository.clone(),
                object: object.clone(),
                latest_version: 0,
                serving: None,
                attempted: None,
                wanted: Wanted::default(),
                removed: false,
            };
            self.configs.insert(key.clone(), Versioned { version: 0, value });
        }
        let state = self.config(key).await?;
        state.ok_or_else(|| crate::error::Failure::stalled(format!("`{key}` has no content")))
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

    fn finish(mut self) -> (Transaction, Touched) {
        let mut revisions: BTreeSet<(RepositoryName, CommitId)> = BTreeSet::new();
        let (mut begun, mut ended) = (Vec::new(), Vec::new());
        for id in &self.changed_runs {
            if let Some(run) = self.runs.remove(id) {
                let (kind, verdict) = kind_and_verdict(&run.value);
                begun.extend((run.version == 0).then_some(kind));
                ended.extend(verdict.map(|verdict| (kind, verdict))); // a run changes for the last time when it ends
                let (repository, commit) = run.value.revision();
                revisions.insert((repository.clone(), commit.clone()));
                self.writes.push(Write::Run(Box::new(run)));
            }
        }
        for key in &self.changed_configs {
            if let Some(config) = self.configs.remove(key) {
                self.writes.push(Write::Config(Box::new(config)));
            }
        }
        for (repository, commit) in revisions {
            self.ask(&RunId::new(REPORT), Action::Report { repository, commit });
        }
        let runs = self.changed_runs.into_iter().collect();
        let touched = Touched { runs, configs: self.changed_configs, objects: self.objects, begun, ended };
        (Transaction { writes: self.writes }, touched)
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

fn config_key(run: &SequenceRun, key: &ObjectKey) -> ConfigKey {
    let ServiceKey { project, stage, .. } = run.service.clone();
    ConfigKey { project, stage, name: key.name.clone() }
}

#[expect(clippy::too_many_arguments, reason = "every field of the record comes from somewhere else")]
fn deployment_run(
    parent: &SequenceRun,
    config: ConfigKey,
    version: u32,
    change: &Change,
    object: crate::model::object::Object,
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
