//! What a story comes to turn by turn, for whoever reads one that does not hold.

#![expect(clippy::print_stdout, reason = "a trace is for whoever asks for it")]

use std::collections::BTreeMap;

use crate::error::Result;
use crate::model::ids::CommitId;
use crate::model::run::Run;
use crate::model::state::{ConfigState, RepositoryState};
use crate::store::{ReadStore, RunFilter};
use crate::testing::interleaved::daemon::Surroundings;
use crate::testing::interleaved::people::now;

/// Prints each change of runs, deployment configs and pods after the turn that made it.
#[derive(Debug, Default)]
pub(super) struct Trace {
    shown: BTreeMap<String, String>,
    deeds: usize,
}

impl Trace {
    /// Prints a line of the story before it happens.
    pub(super) fn line(&self, line: &str) {
        println!("        {line}");
    }

    /// Prints what differs from the turn before.
    pub(super) fn after_turn(&mut self, turn: u64, around: &Surroundings) -> Result<()> {
        let store = around.disk.read(around.clock.clone());
        let deeds = around.runtime.deeds_since(self.deeds);
        deeds.iter().for_each(|deed| println!("{turn:>6}  {deed:?}"));
        self.deeds += deeds.len();
        let configs = now(store.configs(None, None))?.whole()?;
        let runs = now(store.runs(&RunFilter::default()))?.whole()?;
        let configs = configs.iter().map(|config| (config.value.key.to_string(), config_line(&config.value)));
        let runs = runs.iter().map(|run| (run.value.id().to_string(), run_line(&run.value)));
        let known = now(store.repositories())?.whole()?;
        let repositories = known.iter().map(|it| (it.value.name.to_string(), repository_line(&it.value)));
        let mut plans = Vec::new();
        for repository in &known {
            plans.extend(plan_line(&store, &repository.value)?);
        }
        let pods = around.runtime.pods().into_iter().map(|pod| (pod.id.to_string(), format!("{:?}", pod.phase)));
        let after: BTreeMap<String, String> =
            repositories.chain(plans).chain(configs).chain(runs).chain(pods).collect();
        for (name, line) in after.iter().filter(|(name, line)| self.shown.get(*name) != Some(line)) {
            println!("{turn:>6}  {name}: {line}");
        }
        for name in self.shown.keys().filter(|name| !after.contains_key(*name)) {
            println!("{turn:>6}  {name}: gone");
        }
        self.shown = after;
        Ok(())
    }
}

fn config_line(config: &ConfigState) -> String {
    let ConfigState { serving, attempted, wanted, removed, .. } = config;
    let serving = serving.as_ref().map(|version| version.number);
    let attempted = attempted.as_ref().map(|attempt| (attempt.version.number, attempt.outcome));
    let removed = if *removed { ", removed" } else { "" };
    let owner = wanted.owner.as_ref().map_or("-", |owner| owner.as_str());
    format!(
        "{serving:?} serves, {attempted:?} attempted, {:?} wanted at generation {} by {owner}, fallback {:?}{removed}",
        wanted.counts(),
        wanted.generation,
        wanted.fallback,
    )
}

fn repository_line(repository: &RepositoryState) -> String {
    let short = |commit: &Option<CommitId>| commit.as_ref().map_or("-".to_owned(), |commit| commit.short().to_owned());
    format!("seen {}, applied {}", short(&repository.seen), short(&repository.applied))
}

/// What the plan of the applied revision says of services, under its name.
fn plan_line(store: &dyn ReadStore, repository: &RepositoryState) -> Result<Option<(String, String)>> {
    let Some(applied) = &repository.applied else { return Ok(None) };
    let revision = now(store.revision(&repository.name, applied.as_str()))?;
    let Some(plan) = revision.as_ref().and_then(|revision| revision.plan()) else { return Ok(None) };
    let mut parts = Vec::new();
    for stage in &plan.stages {
        let carried = stage.carried.iter().map(|(service, by)| format!("{}/{service} by {}", stage.stage, by.short()));
        let services = stage.services.iter().map(|part| {
            let changes = part.changes.iter().map(|it| format!("{} {} {}", it.decision.as_str(), it.key, it.cause));
            format!("{}/{}: {}", stage.stage, part.service, changes.collect::<Vec<_>>().join(", "))
        });
        parts.extend(services.chain(carried));
    }
    Ok(Some((format!("plan of {}", applied.short()), parts.join("; "))))
}

fn run_line(run: &Run) -> String {
    match run {
        Run::Sequence(run) => {
            let tasks: Vec<_> = run.tasks.iter().map(|task| (&task.name, &task.tries, task.outcome)).collect();
            format!(
                "{:?} of {:?} {} {} ({}): {} {:?} brings {:?}",
                run.state,
                run.service,
                run.procedure.digest,
                run.commit.short(),
                run.cause,
                run.message,
                tasks,
                run.changes()
                    .iter()
                    .map(|change| format!("{} {}", change.decision.as_str(), change.key))
                    .collect::<Vec<_>>()
            )
        }
        Run::Deployment(run) => format!("{:?} {}{}", run.step, run.message, run.problem),
    }
}
