//! What the strategies mean: which steps come after which, and how fast pods may be exchanged.

use std::collections::BTreeMap;

use crate::model::deployment_config::{DeploymentConfigSpec, HookPoint, StrategyKind};
use crate::model::pod::Scalar;
use crate::model::run::{DeploymentRun, DeploymentStep};
use crate::model::wanted::{Pace, Portion, Target};

/// The step after `step` when it went well.
pub fn next_step(spec: &DeploymentConfigSpec, step: DeploymentStep) -> DeploymentStep {
    let recreate = spec.strategy.kind == StrategyKind::Recreate;
    let has_mid = spec.strategy.hook(HookPoint::Mid).is_some();
    match step {
        DeploymentStep::Prepare => DeploymentStep::Pre,
        DeploymentStep::Pre if recreate => DeploymentStep::ScaleDown,
        DeploymentStep::Pre if has_mid => DeploymentStep::FirstPod,
        DeploymentStep::Pre => DeploymentStep::Rollout,
        DeploymentStep::ScaleDown | DeploymentStep::FirstPod => DeploymentStep::Mid,
        DeploymentStep::Mid => DeploymentStep::Rollout,
        DeploymentStep::Rollout => DeploymentStep::Post,
        DeploymentStep::Post | DeploymentStep::Restore | DeploymentStep::Done => DeploymentStep::Done,
    }
}

/// What each version is to have while `run` is at its step.
pub fn targets(run: &DeploymentRun) -> BTreeMap<u32, Target> {
    let part = |portion| Target { portion, share: None };
    let old = |target: Target| run.previous.map(|previous| (previous, target));
    match run.step {
        DeploymentStep::FirstPod => {
            let first = (run.version, part(Portion::AtMost(1)));
            old(part(Portion::Rest)).into_iter().chain([first]).collect()
        }
        DeploymentStep::Rollout | DeploymentStep::Post => BTreeMap::from([(run.version, Target::ALL)]),
        DeploymentStep::Restore => old(Target::ALL).into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// The version that serves until the targets of `run` can. Behind the scale-down of Recreate and behind a mid hook there
/// is none: what the new version needs may have been made since, and the old one cannot live with it.
pub fn fallback(run: &DeploymentRun) -> Option<u32> {
    let strategy = &run.spec.strategy;
    let exchanged = strategy.kind == StrategyKind::Recreate || strategy.hook(HookPoint::Mid).is_some();
    match run.step {
        DeploymentStep::FirstPod => run.previous,
        DeploymentStep::Rollout if !exchanged => run.previous,
        _ => None,
    }
}

/// How new pods take over under the spec's strategy, where there are to be so many.
pub fn pace(spec: &DeploymentConfigSpec, replicas: u32) -> Pace {
    if spec.strategy.kind == StrategyKind::Recreate {
        return Pace::Recreate;
    }
    let params = spec.strategy.rolling_params.as_ref();
    let surge = params.and_then(|params| params.max_surge.as_ref());
    let unavailable = params.and_then(|params| params.max_unavailable.as_ref());
    let max_surge = share(surge, replicas, Rounding::Up);
    let mut max_unavailable = share(unavailable, replicas, Rounding::Down);
    if max_surge == 0 && max_unavailable == 0 {
        max_unavailable = 1; // as upstream: with neither, nothing could ever move
    }
    Pace::Rolling { max_surge, max_unavailable }
}

/// Which way a percentage of pods is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

/// A number or a percentage of `replicas`; 25% if absent. Source: upstream's `ResolveFenceposts`.
fn share(value: Option<&Scalar>, replicas: u32, rounding: Rounding) -> u32 {
    let percent = match value {
        None => 25,
        Some(Scalar::Number(number)) => return u32::try_from(*number).unwrap_or(0),
        Some(Scalar::Text(text)) => text.trim_end_matches('%').parse::<u64>().unwrap_or(0),
    };
    let scaled = u64::from(replicas) * percent;
    let pods = match rounding {
        Rounding::Up => scaled.div_ceil(100),
        Rounding::Down => scaled / 100,
    };
    u32::try_from(pods).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::deployment_config::{LifecycleHook, RecreateParams, RollingParams, Strategy};

    fn rolling(surge: &str, unavailable: &str) -> DeploymentConfigSpec {
        let scalar = |text: &str| Some(text.parse().map_or(Scalar::Text(text.into()), Scalar::Number));
        let params =
            RollingParams { max_surge: scalar(surge), max_unavailable: scalar(unavailable), ..Default::default() };
        let strategy = Strategy { rolling_params: Some(params), ..Default::default() };
        DeploymentConfigSpec { strategy, ..Default::default() }
    }

    #[test]
    fn surge_rounds_up_and_unavailable_rounds_down() {
        for (replicas, surge, unavailable, expected) in [
            (4, "25%", "25%", (1, 1)),
            (3, "25%", "25%", (1, 0)),
            (1, "25%", "25%", (1, 0)),
            (10, "2", "0", (2, 0)),
            (10, "0", "30%", (0, 3)),
            (2, "0", "25%", (0, 1)),
            (0, "25%", "25%", (0, 1)),
        ] {
            let pace = pace(&rolling(surge, unavailable), replicas);
            let (max_surge, max_unavailable) = expected;
            let expected = Pace::Rolling { max_surge, max_unavailable };
            assert_eq!(pace, expected, "{replicas} {surge} {unavailable}");
        }
    }

    fn steps(spec: &DeploymentConfigSpec) -> Vec<DeploymentStep> {
        let first = Some(DeploymentStep::Prepare);
        std::iter::successors(first, |step| (*step != DeploymentStep::Done).then(|| next_step(spec, *step))).collect()
    }

    #[test]
    fn the_mid_hook_stands_between_old_and_new() {
        use DeploymentStep::{Done, FirstPod, Mid, Post, Pre, Prepare, Rollout, ScaleDown};
        let mut spec = rolling("1", "0");
        assert_eq!(steps(&spec), [Prepare, Pre, Rollout, Post, Done]);
        spec.strategy.rolling_params.get_or_insert_default().mid = Some(LifecycleHook::default());
        assert_eq!(steps(&spec), [Prepare, Pre, FirstPod, Mid, Rollout, Post, Done]);
        spec.strategy.kind = StrategyKind::Recreate;
        spec.strategy.recreate_params = Some(RecreateParams::default());
        assert_eq!(steps(&spec), [Prepare, Pre, ScaleDown, Mid, Rollout, Post, Done]);
    }
}
