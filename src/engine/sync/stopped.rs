//! A `Deployment` whose file says `paused` stays where it is, also in the middle of a rollout, as in Kubernetes, and goes on
//! once a revision says that no longer. OpenShift lets the rollout of a `DeploymentConfig` go on.

use crate::engine::by_hand::open_rollout;
use crate::engine::records::{Needs, Records, Undecided};
use crate::engine::transition::Transition;
use crate::model::event::Event;
use crate::model::hold::ProjectHolds;
use crate::model::ids::ConfigKey;
use crate::model::object::Kind;
use crate::model::plan::Plan;
use crate::model::run::DeploymentRun;

/// Who has paused what a file pauses.
pub const FILE: &str = "its file";

/// Tells the rollouts that are under way what the revision says, and remembers which of them stay where they are.
///
/// # Errors
/// If something must be read first.
pub(super) fn tell(transition: &mut Transition<'_>, plan: &Plan) -> Result<(), Undecided> {
    let known = transition.records.holds.get(&plan.project)?;
    let before = known.map(|holds| holds.stopped.clone()).unwrap_or_default();
    let mut needs = Needs::default();
    let mut rollout = |config: &ConfigKey| needs.of(under_way(transition.records, config)).map(Option::flatten);
    let (mut stopped, mut told) = (Vec::new(), Vec::new());
    for config in paused(plan) {
        let Some(run) = rollout(&config)? else { continue };
        if run.waits.paused_by.is_none() && run.failure.is_none() {
            told.push((run.id, Event::Paused { by: FILE.to_owned() }));
        }
        stopped.push(config);
    }
    for config in before.iter().filter(|config| !stopped.contains(config)) {
        // A person may have resumed it, and paused it again.
        if let Some(run) = rollout(config)?.filter(|run| run.waits.paused_by.as_deref() == Some(FILE)) {
            told.push((run.id, Event::Resumed { by: FILE.to_owned() }));
        }
    }
    needs.none()?;
    told.into_iter().for_each(|(run, event)| transition.tell(run, event));
    remember(transition.records, plan, before, stopped)
}

/// The `Deployment`s that a revision pauses, and that something is to be done about.
fn paused(plan: &Plan) -> impl Iterator<Item = ConfigKey> {
    plan.stages.iter().flat_map(move |stage| {
        let changes = stage.services.iter().flat_map(|part| &part.changes);
        let paused = changes.filter(|change| change.is_paused() && change.kind() == Kind::Deployment);
        paused.map(move |change| ConfigKey {
            project: plan.project.clone(),
            stage: stage.stage.clone(),
            name: change.key.name.clone(),
        })
    })
}

fn under_way(records: &Records, config: &ConfigKey) -> Result<Option<DeploymentRun>, Undecided> {
    match records.configs.get(config)? {
        Some(state) => open_rollout(records, state),
        None => Ok(None),
    }
}

fn remember(
    records: &mut Records,
    plan: &Plan,
    before: Vec<ConfigKey>,
    stopped: Vec<ConfigKey>,
) -> Result<(), Undecided> {
    if before == stopped {
        return Ok(());
    }
    let holds = records.holds.get(&plan.project)?.cloned();
    let holds = holds.unwrap_or_else(|| ProjectHolds::none(plan.project.clone()));
    records.holds.put(&plan.project, Some(ProjectHolds { stopped, ..holds }))
}
