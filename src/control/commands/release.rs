//! Releasing: what a hold or a file keeps from happening, and what happens without it.

use std::collections::BTreeMap;

use crate::control::commands::operator::{Operator, said};
use crate::control::commands::{Done, Refusal, by_hand};
use crate::error::{Failure, Result};
use crate::executor::sync;
use crate::model::hold::{Lifted, Release};
use crate::model::ids::{ConfigKey, HoldId, ProjectName};
use crate::model::plan::Change;
use crate::model::run::SequenceRun;

/// Ends holds and lets go on what files pause; says what that starts, also if it is only asked for that.
pub(super) async fn release(
    operator: &Operator,
    holds: Vec<HoldId>,
    paused: Vec<ConfigKey>,
    dry_run: bool,
    by: &str,
) -> Result<Done, Refusal> {
    let asked = by_project(operator, &holds, &paused, by).await?;
    let mut done = said(told(&holds, &paused));
    for (project, release) in &asked {
        done.starts.extend(starts(operator, project, release).await?);
    }
    if !dry_run {
        for (project, release) in &asked {
            let declaring = by_hand::release(&operator.driver, project, release, by).await?;
            if let Some(watcher) = declaring.and_then(|name| operator.watchers.get(&name)) {
                watcher.requests.request();
            }
        }
    }
    Ok(done)
}

async fn by_project(
    operator: &Operator,
    holds: &[HoldId],
    paused: &[ConfigKey],
    by: &str,
) -> Result<BTreeMap<ProjectName, Release>, Refusal> {
    let mut asked: BTreeMap<ProjectName, Release> = BTreeMap::new();
    let known = operator.driver.store.holds().await?;
    for id in holds {
        let hold = known.clone().find(|known| &known.id == id)?;
        let unknown = || Refusal::Unknown(Failure::stalled(format!("there is no hold `{id}`")));
        asked.entry(hold.ok_or_else(unknown)?.scope.project).or_default().holds.push(id.clone());
    }
    let since = operator.driver.clock.now();
    for config in paused {
        let lifted = Lifted { config: config.clone(), by: by.to_owned(), since };
        asked.entry(config.project.clone()).or_default().paused.push(lifted);
    }
    Ok(asked)
}

/// What goes on without something that is held or paused, a line each. Of a repository that is watched no longer,
/// nobody can tell.
async fn starts(operator: &Operator, project: &ProjectName, release: &Release) -> Result<Vec<String>> {
    let repository = by_hand::declaring(&operator.driver, project).await?;
    let Some(watcher) = repository.and_then(|name| operator.watchers.get(&name)) else { return Ok(Vec::new()) };
    Ok(match sync::starts_after(&operator.driver, &watcher.watched, project, release).await? {
        Ok(runs) => runs.iter().flat_map(lines).collect(),
        Err(unreadable) => vec![format!("{project}: nobody can tell what: {}", unreadable.one_line())],
    })
}

/// What a run does, for people.
fn lines(run: &SequenceRun) -> Vec<String> {
    let place = format!("{}/{}", run.service.stage, run.service.service);
    let commit = run.commit.short();
    let acting = run.changes().iter().filter(|change| change.decision.does_something());
    let line = |what: String| format!("{place}: {what} of {commit}");
    let does = |change: &Change| format!("{} {} ({})", change.decision.as_str(), change.title(), change.cause);
    let mut lines: Vec<String> = acting.map(|change| line(does(change))).collect();
    if lines.is_empty() {
        lines.push(line(run.sequence().to_owned()));
    }
    lines
}

fn told(holds: &[HoldId], paused: &[ConfigKey]) -> String {
    let holds = holds.iter().map(|id| format!("hold {id} released"));
    let paused = paused.iter().map(|config| format!("{config} goes on until a revision changes that"));
    holds.chain(paused).collect::<Vec<_>>().join("; ")
}
