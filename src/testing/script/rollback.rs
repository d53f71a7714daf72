//! How a story goes back: `rollback dev/web dev/api to=2`.

use crate::engine::rollback::Started;
use crate::engine::rollback::evaluate::{Alteration, Evaluation};
use crate::error::{Failure, Result};
use crate::model::rollback::{Rollback, RollbackParts, RollbackTo};
use crate::simulation::world::commit;
use crate::testing::script::{key, number};

/// What the words of a line ask for.
pub(super) fn asked(words: &[&str]) -> Result<Vec<Rollback>> {
    let (mut to, mut parts, mut notes) = (RollbackTo::LastComplete, RollbackParts::ALL, String::new());
    let mut configs = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some(("to", version)) => to = RollbackTo::Version(number(version)?),
            Some(("revision", push)) => {
                to = RollbackTo::Revision(commit(number(push)?));
            }
            Some(("only", "config")) => parts = RollbackParts::CONFIG,
            Some(("only", "application")) => parts = RollbackParts::APPLICATION,
            Some(("notes", text)) => text.clone_into(&mut notes),
            None if *word == "dry" => {}
            None => configs.push(key(word)?),
            Some(_) => return Err(Failure::stalled(format!("`{word}` says nothing about a rollback"))),
        }
    }
    let rollback = |config| {
        let (to, notes) = (to.clone(), notes.clone());
        Rollback { config, to, parts, notes, may_be_absent: false }
    };
    Ok(configs.into_iter().map(rollback).collect())
}

/// What goes back, what stays, and what differs then.
pub(super) fn told(started: &Started, evaluations: &[Evaluation]) -> Vec<String> {
    let mut lines = Vec::new();
    for (member, evaluation) in started.members.iter().zip(evaluations) {
        lines.push(format!("{} goes back to #{} as #{}", member.config().name, member.to, member.version));
        lines.extend(evaluation.changes.iter().map(altered));
        lines.extend(evaluation.hooks.iter().map(|hook| format!("  runs {hook}")));
        lines.extend(evaluation.warnings.iter().map(|warning| format!("  warning: {warning}")));
    }
    lines.extend(started.left.iter().cloned());
    lines
}

fn altered(change: &Alteration) -> String {
    let value = |value: &Option<serde_json::Value>| value.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
    format!("  {} {}: {} -> {}", change.area.as_str(), change.name, value(&change.old), value(&change.new))
}
