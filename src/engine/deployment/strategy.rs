//! What the strategies mean: which steps come after which, and how fast pods may be exchanged.

use std::collections::BTreeMap;

use crate::model::deployment_config::{DeploymentConfigSpec, HookPoint, Strategy, StrategyKind};
use crate::model::pod::Scalar;
use crate::model::run::{Asked, DeploymentRun, DeploymentStep, TrialPart};
use crate::model::wanted::{Pace, Portion, Target};

/// The step after `step` of a deployment when it went well.
pub fn next_step(run: &DeploymentRun, step: DeploymentStep) -> DeploymentStep {
    match step {
        DeploymentStep::Prepare => DeploymentStep::Pre,
        DeploymentStep::Pre if run.spec.strategy.deployer().is_some() || run.led_by.is_some() => {
            DeploymentStep::Deployer
        }
        DeploymentStep::Pre | DeploymentStep::Deployer => exchange_begins(run),
        DeploymentStep::Trial { step, part: TrialPart::Weight } if pauses(run, step) => {
            DeploymentStep::Trial { step, part: TrialPart::Pause }
        }
        DeploymentStep::Trial { step, part: TrialPart::Weight | TrialPart::Pause } if is_judged(run, step) => {
            DeploymentStep::Trial { step, part: TrialPart::Analysis }
        }
        DeploymentStep::Trial { step, .. } => next_trial(run, step + 1),
        DeploymentStep::ScaleDown | DeploymentStep::FirstPod => DeploymentStep::Mid,
        DeploymentStep::Mid => DeploymentStep::Rollout,
        DeploymentStep::Rollout => DeploymentStep::Post,
        DeploymentStep::Post | DeploymentStep::Restore | DeploymentStep::Done => DeploymentStep::Done,
    }
}

/// The first step of the strategy's own. What a deployer had it do already is not done again.
fn exchange_begins(run: &DeploymentRun) -> DeploymentStep {
    let strategy = &run.spec.strategy;
    match strategy.kind {
        StrategyKind::Recreate if run.deployer.until() == 0 => DeploymentStep::ScaleDown,
        StrategyKind::Rolling if strategy.hook(HookPoint::Mid).is_some() => DeploymentStep::FirstPod,
        _ => next_trial(run, 1),
    }
}

/// The next step in which the new version proves itself, or what comes after the last one.
fn next_trial(run: &DeploymentRun, step: u16) -> DeploymentStep {
    let strategy = &run.spec.strategy;
    match has_trial(run, step) {
        true => DeploymentStep::Trial { step, part: TrialPart::Weight },
        false if strategy.hook(HookPoint::Mid).is_some() => DeploymentStep::Mid,
        false => DeploymentStep::Rollout,
    }
}

/// Beside nothing there is nothing to prove. Who goes back has no time for a canary, and knows what he goes back to; blue/green
/// brings that up whole all the same.
fn has_trial(run: &DeploymentRun, step: u16) -> bool {
    let strategy = &run.spec.strategy;
    match strategy.kind {
        _ if run.previous.is_none() => false,
        StrategyKind::Canary => {
            let is_skipped = run.is_rollback || run.promoted.is_some_and(|last| step > last);
            !is_skipped && strategy.canary_step(step).is_some()
        }
        StrategyKind::BlueGreen => step == 1,
        StrategyKind::Rolling | StrategyKind::Recreate | StrategyKind::Custom | StrategyKind::Ab => false,
    }
}

fn pauses(run: &DeploymentRun, step: u16) -> bool {
    run.promoted.is_none_or(|last| step < last)
        && run.spec.strategy.canary_step(step).is_some_and(|step| step.pause.is_some())
}

fn is_judged(run: &DeploymentRun, step: u16) -> bool {
    let at = DeploymentStep::Trial { step, part: TrialPart::Analysis };
    let point = hook_point(&run.spec.strategy, at);
    let is_skipped = run.is_rollback || run.promoted.is_some_and(|last| step >= last);
    !is_skipped && point.is_some_and(|point| run.spec.strategy.hook(point).is_some())
}

/// What runs in a step, a hook or the user's own deployer, if it is declared.
pub fn hook_point(strategy: &Strategy, step: DeploymentStep) -> Option<HookPoint> {
    match step {
        DeploymentStep::Pre => Some(HookPoint::Pre),
        DeploymentStep::Deployer => Some(HookPoint::Deployer),
        DeploymentStep::Mid => Some(HookPoint::Mid),
        DeploymentStep::Post => Some(HookPoint::Post),
        DeploymentStep::Trial { step, part: TrialPart::Analysis } => Some(match strategy.kind {
            StrategyKind::Canary => HookPoint::Analysis(step),
            _ => HookPoint::Analysis(0),
        }),
        _ => None,
    }
}

/// What each version is to have while `run` is at its step.
pub fn targets(run: &DeploymentRun) -> BTreeMap<u32, Target> {
    let part = |portion| Target { portion, ..Target::ALL };
    let old = |target: Target| run.previous.map(|previous| (previous, target));
    match run.step {
        DeploymentStep::Deployer => asked_for(run),
        DeploymentStep::FirstPod => {
            let first =
                (run.version, part(Portion::AtMost(percent_of(run.replicas, run.deployer.until().into()).max(1))));
            old(part(Portion::Rest)).into_iter().chain([first]).collect()
        }
        DeploymentStep::Trial { step, .. } => beside(run, run.spec.strategy.canary_step(step).map(|step| step.weight)),
        DeploymentStep::Rollout | DeploymentStep::Post => exchanged(run),
        DeploymentStep::Restore => old(Target::ALL).into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

/// What a deployer has asked for; before it has, what served before serves on.
fn asked_for(run: &DeploymentRun) -> BTreeMap<u32, Target> {
    let at_most = |pods| Target { portion: Portion::AtMost(pods), ..Target::ALL };
    let recreates = run.spec.strategy.kind == StrategyKind::Recreate;
    let (new, old) = match run.deployer.asked {
        None => (0, Some(Target::ALL)),
        Some(Asked::Scale { new, old }) => (new, Some(old.map_or(Target::ALL, at_most))),
        Some(Asked::Until { percent }) => {
            let rest = Target { portion: Portion::Rest, ..Target::ALL };
            (percent_of(run.replicas, percent.into()), Some(rest).filter(|_| !recreates))
        }
    };
    let old = run.previous.and_then(|previous| Some((previous, old?)));
    old.into_iter().chain([(run.version, at_most(new))]).collect()
}

/// So many in a hundred of the pods, rounded up.
fn percent_of(pods: u32, percent: u64) -> u32 {
    u32::try_from((u64::from(pods) * percent).div_ceil(100)).unwrap_or(u32::MAX)
}

/// The new version beside the one that serves: with a part, or whole and without traffic.
fn beside(run: &DeploymentRun, weight: Option<u32>) -> BTreeMap<u32, Target> {
    let Some(previous) = run.previous else { return BTreeMap::from([(run.version, Target::ALL)]) };
    match weight {
        Some(weight) => Target::split((run.version, weight), previous),
        None => BTreeMap::from([(previous, Target::ALL.with_share(1)), (run.version, Target::spare(None))]),
    }
}

/// What is to be there in the end. Blue/green keeps what served before as it is, and A/B leaves it its part.
fn exchanged(run: &DeploymentRun) -> BTreeMap<u32, Target> {
    let strategy = &run.spec.strategy;
    match (run.previous, strategy.ab_weight(), strategy.keep()) {
        (Some(previous), Some(weight), _) if !run.is_rollback => Target::split((run.version, weight), previous),
        (Some(previous), _, Some(_)) if !run.is_rollback => {
            BTreeMap::from([(previous, Target::spare(None)), (run.version, Target::ALL.with_share(1))])
        }
        (Some(_), _, Some(_)) => BTreeMap::from([(run.version, Target::ALL.with_share(1))]),
        _ => BTreeMap::from([(run.version, Target::ALL)]),
    }
}

/// Whether nothing is left of what served before: it is up as a whole, and its strategy keeps nothing beside it.
pub(super) fn has_replaced(run: &DeploymentRun) -> bool {
    let is_left = |previous: u32| exchanged(run).contains_key(&previous);
    run.step == DeploymentStep::Post && run.previous.is_some_and(|previous| !is_left(previous))
}

/// The version that serves until the targets of `run` can. Behind the scale-down of Recreate and behind a mid hook there
/// is none: what the new version needs may have been made since, and the old one cannot live with it.
pub fn fallback(run: &DeploymentRun) -> Option<u32> {
    let strategy = &run.spec.strategy;
    let recreates = strategy.kind == StrategyKind::Recreate;
    let exchanged = recreates || strategy.hook(HookPoint::Mid).is_some() || has_ended_the_old(run);
    match run.step {
        DeploymentStep::Deployer if run.deployer.asked.is_some() && (recreates || is_scaled(run)) => None,
        DeploymentStep::Deployer => run.previous,
        DeploymentStep::FirstPod | DeploymentStep::Trial { .. } => run.previous,
        DeploymentStep::Rollout if !exchanged => run.previous,
        _ => None,
    }
}

/// Whether a deployer says by itself how many pods there are.
fn is_scaled(run: &DeploymentRun) -> bool {
    matches!(run.deployer.asked, Some(Asked::Scale { .. }))
}

/// Whether a deployer has had what served before end.
fn has_ended_the_old(run: &DeploymentRun) -> bool {
    matches!(run.deployer.asked, Some(Asked::Scale { old: Some(0), .. }))
}

/// How new pods take over while `run` is at its step. What a deployer has scaled is so at once.
pub fn pace_of(run: &DeploymentRun) -> Pace {
    match run.step {
        DeploymentStep::Deployer if is_scaled(run) => Pace::AT_ONCE,
        _ => pace(&run.spec, run.replicas),
    }
}

/// How new pods take over under the spec's strategy, where there are to be so many.
pub fn pace(spec: &DeploymentConfigSpec, replicas: u32) -> Pace {
    match spec.strategy.kind {
        StrategyKind::Recreate => return Pace::Recreate,
        StrategyKind::BlueGreen => return Pace::Rolling { max_surge: replicas.max(1), max_unavailable: 0 },
        StrategyKind::Rolling | StrategyKind::Custom | StrategyKind::Canary | StrategyKind::Ab => {}
    }
    let limits = spec.strategy.limits();
    let max_surge = share(limits.max_surge, replicas, Rounding::Up);
    let mut max_unavailable = share(limits.max_unavailable, replicas, Rounding::Down);
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
    match rounding {
        Rounding::Up => percent_of(replicas, percent),
        Rounding::Down => u32::try_from(u64::from(replicas) * percent / 100).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::fixtures;
    use crate::model::deployment_config::{LifecycleHook, RecreateParams, RollingParams};
    use crate::model::run::Phase;
    use crate::model::trial::{BlueGreenParams, CanaryParams, CanaryStep, Pause};

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

    fn way(spec: &DeploymentConfigSpec, change: impl Fn(&mut DeploymentRun)) -> Vec<DeploymentStep> {
        let parent = fixtures::deploying(fixtures::delivery("s1", "b"), 2);
        let mut run = fixtures::deployment(2, "b", &parent, Phase::New);
        run.spec = spec.clone();
        run.previous = Some(1);
        change(&mut run);
        let first = Some(DeploymentStep::Prepare);
        std::iter::successors(first, |step| (*step != DeploymentStep::Done).then(|| next_step(&run, *step))).collect()
    }

    fn steps(spec: &DeploymentConfigSpec) -> Vec<DeploymentStep> {
        way(spec, |_| {})
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
        assert_eq!(
            steps(&spec),
            [Prepare, Pre, ScaleDown, Mid, Rollout, Post, Done],
            "a leftover hook counts for nothing"
        );
    }

    fn canary() -> DeploymentConfigSpec {
        let pause = Some(Pause::UntilResumed);
        let steps = vec![
            CanaryStep { weight: 10, pause, analysis: Some(LifecycleHook::default()) },
            CanaryStep { weight: 50, ..CanaryStep::default() },
        ];
        let canary_params = Some(CanaryParams { steps, ..CanaryParams::default() });
        let strategy = Strategy { kind: StrategyKind::Canary, canary_params, ..Strategy::default() };
        DeploymentConfigSpec { strategy, ..Default::default() }
    }

    fn trial(step: u16, part: TrialPart) -> DeploymentStep {
        DeploymentStep::Trial { step, part }
    }

    #[test]
    fn a_canary_has_its_steps_only_beside_something_and_not_on_the_way_back() {
        use DeploymentStep::{Done, Mid, Post, Pre, Prepare, Rollout};
        use TrialPart::{Analysis, Pause, Weight};
        let (mut spec, straight) = (canary(), [Prepare, Pre, Rollout, Post, Done]);
        let whole = [
            Prepare,
            Pre,
            trial(1, Weight),
            trial(1, Pause),
            trial(1, Analysis),
            trial(2, Weight),
            Rollout,
            Post,
            Done,
        ];
        assert_eq!(steps(&spec), whole);
        assert!(whole.is_sorted(), "what comes later is more");
        assert_eq!(way(&spec, |run| run.previous = None), straight, "a first deployment");
        assert_eq!(way(&spec, |run| run.is_rollback = true), straight, "a rollback");
        let promoted = way(&spec, |run| run.promoted = Some(1));
        assert_eq!(promoted, [Prepare, Pre, trial(1, Weight), Rollout, Post, Done], "a person promotes it");
        spec.strategy.canary_params.get_or_insert_default().mid = Some(LifecycleHook::default());
        assert_eq!(steps(&spec)[5..8], [trial(2, Weight), Mid, Rollout], "before the rest is exchanged");
    }

    #[test]
    fn blue_green_brings_up_the_whole_and_judges_it() {
        use DeploymentStep::{Done, Post, Pre, Prepare, Rollout};
        use TrialPart::{Analysis, Weight};
        let params = BlueGreenParams { analysis: Some(LifecycleHook::default()), ..BlueGreenParams::default() };
        let mut spec = canary();
        spec.strategy.kind = StrategyKind::BlueGreen;
        spec.strategy.blue_green_params = Some(params);
        let steps = steps(&spec);
        assert_eq!(steps, [Prepare, Pre, trial(1, Weight), trial(1, Analysis), Rollout, Post, Done]);
        let back = way(&spec, |run| run.is_rollback = true);
        assert_eq!(back, [Prepare, Pre, trial(1, Weight), Rollout, Post, Done], "what ran before is not judged again");
    }
}
