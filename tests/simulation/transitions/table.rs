//! Tables of transitions as text: a line for each state, and below it one for each fact with what becomes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use launchway::model::action::{Action, Decided, Effect};
use launchway::model::event::Event;
use launchway::model::wanted::Target;
use similar::TextDiff;

use super::{KINDS, kind};

/// One state with what each fact makes of it: facts are named by their kind and a word that tells two of a kind apart.
pub(crate) struct Block {
    pub(crate) state: String,
    pub(crate) rows: Vec<(Event, &'static str, String)>,
}

/// Compares a walk over all pairs with the table in `file`.
pub(crate) fn check(file: &str, blocks: &[Block]) {
    let mut walked = String::new();
    for block in blocks {
        for wanted in KINDS {
            let tried = block.rows.iter().any(|(event, _, _)| kind(event) == wanted);
            assert!(tried, "`{wanted}` is not tried in state `{}`", block.state);
        }
        writeln!(walked, "{}", block.state).unwrap();
        for (event, word, outcome) in &block.rows {
            writeln!(walked, "    {:<26} {outcome}", format!("{} {word}", kind(event))).unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/transitions").join(file);
    if std::env::var_os("UPDATE_STORIES").is_some() {
        fs::write(&path, &walked).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let difference = TextDiff::from_lines(&written, &walked).unified_diff().header(file, "walked").to_string();
    assert!(difference.is_empty(), "\n{difference}");
}

/// What a step decided, in words.
pub(crate) fn decisions(decided: &Decided) -> Vec<String> {
    decided.effects.iter().map(effect).chain(decided.actions.iter().map(action)).collect()
}

fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Tell { run, event } => format!("tells {run} {}", kind(event)),
        Effect::Apply { change, .. } => format!("applies {}", change.key),
        Effect::StartDeployment { change, .. } => format!("deploys {}", change.key.name),
        Effect::GoBack { task, .. } => format!("asks what task {task} has gone back"),
        Effect::RollBack { config, to, .. } => format!("rolls {config} back to #{to}"),
        Effect::Restore { .. } => "brings back what served".into(),
        Effect::Own { .. } => "owns".into(),
        Effect::Want { targets, .. } if targets.is_empty() => "wants none".into(),
        Effect::Want { targets, fallback, pace, stays, .. } => {
            let part = |(version, target): (&u32, &Target)| match target.share {
                Some(share) => format!("{:?} of #{version} with {share}", target.portion),
                None => format!("{:?} of #{version}", target.portion),
            };
            let parts: Vec<String> = targets.iter().map(part).collect();
            let fallback = fallback.map(|version| format!(" or else #{version}")).unwrap_or_default();
            let stays = if *stays { ", as it is" } else { "" };
            format!("wants {}{fallback} {pace:?}{stays}", parts.join(" and "))
        }
        Effect::TagImages { pod, tags, .. } => format!("tags {} images as {pod}", tags.len()),
        Effect::Judge { readings, .. } => format!("judges by {} values", readings.len()),
        Effect::Remove { config } => format!("removes {}", config.name),
        Effect::DeploymentEnded { version, outcome, .. } => format!("settles #{version} {}", outcome.word()),
        Effect::Passed { .. } => "passes".into(),
        Effect::NotPassed { .. } => "does not pass".into(),
        Effect::Finished { outcome, .. } => format!("finishes {}", outcome.word()),
    }
}

fn action(action: &Action) -> String {
    match action {
        Action::Prepare { .. } => "prepares".into(),
        Action::RunPod { pod } => format!("runs {}", pod.id.name),
        Action::StopPod { pod } => format!("stops {}", pod.name),
        Action::Measure { measurement, .. } => format!("measures {} values", measurement.queries.len()),
        Action::SetTimer { timer, .. } => format!("sets {}", timer.as_str()),
        Action::ClearTimer { timer } => format!("clears {}", timer.as_str()),
        Action::Report { .. } => "reports".into(),
        Action::Propose { .. } => "proposes".into(),
        Action::Preview { .. } => "previews".into(),
        Action::Comment { .. } => "answers".into(),
        Action::Send { .. } => "send".into(),
    }
}
