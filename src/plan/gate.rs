//! What people keep from changing, and what they let go on.

use std::sync::Arc;

use serde_json::Value;

use crate::manifest::digest;
use crate::model::hold::{Hold, Lifted};
use crate::model::object::{Kind, Object, ObjectKey};
use crate::model::plan::{Change, Decision, HELD};
use crate::model::project::Project;

/// A change under a hold: it waits, and says for which one. What does nothing anyway stays as it is.
pub fn held(change: Change, hold: &Hold) -> Change {
    if matches!(change.decision, Decision::None | Decision::Wait | Decision::Refuse) {
        return change;
    }
    let cause = format!("{HELD}{} by {}: {}", hold.id, hold.by, hold.reason);
    Change { decision: Decision::Wait, cause, ..change }
}

/// A project as people let it go on: what their word lifts is not paused, whatever its file says. The second value is
/// what their word is still good for: a file that says `paused` no longer has had its own.
pub fn lift(project: &Arc<Project>, lifted: &[Lifted]) -> (Arc<Project>, Vec<Lifted>) {
    let mut good = Vec::new();
    let mut changed: Option<Project> = None;
    for lifted in lifted {
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: lifted.config.name.clone() };
        let Some(stage) = project.stages.iter().position(|stage| stage.name == lifted.config.stage) else { continue };
        let Some(object) = project.stages[stage].objects.get(&key).and_then(|object| unpaused(object)) else {
            continue;
        };
        good.push(lifted.clone());
        let project = changed.get_or_insert_with(|| (**project).clone());
        project.stages[stage].objects.insert(Arc::new(object));
    }
    (changed.map_or_else(|| Arc::clone(project), Arc::new), good)
}

/// The same without `paused`; nothing, if its file does not say it.
pub fn unpaused(object: &Object) -> Option<Object> {
    let mut object = object.clone();
    let mut content = object.content.value();
    let paused = content.pointer_mut("/spec/paused").filter(|paused| **paused == Value::Bool(true))?;
    *paused = Value::Bool(false);
    digest::exchange(&mut object, content);
    Some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::hold::{HoldKind, HoldScope};
    use crate::model::shipyard::Shipyard;
    use crate::model::time::Timestamp;
    use crate::testing::world::{config_key, deployment_config, project};

    #[test]
    fn what_would_do_something_waits_for_the_hold() {
        let scope = HoldScope { project: "shop".into(), stage: None, service: None, context: None };
        let (kind, since) = (HoldKind::Person, Timestamp(0));
        let hold = Hold { id: "h1".into(), kind, scope, reason: "sale".into(), by: "ann".into(), since };
        let key = ObjectKey { kind: Kind::DeploymentConfig, name: "web".into() };
        for (decision, waits) in [
            (Decision::Create, true),
            (Decision::Deploy, true),
            (Decision::Scale, true),
            (Decision::Update, true),
            (Decision::Delete, true),
            (Decision::None, false),
            (Decision::Wait, false),
        ] {
            let (cause, reasons) = ("cause".to_owned(), Vec::new());
            let change = Change { reasons, cause, ..Change::of(key.clone(), decision) };
            let held = held(change.clone(), &hold);
            assert_eq!(held.is_held(), waits, "{decision:?}");
            assert_eq!(held == change, !waits, "{decision:?}");
            assert!(!waits || held.cause == "hold h1 by ann: sale", "{}", held.cause);
        }
    }

    fn lifted(stage: &str, name: &str) -> Lifted {
        Lifted { config: config_key(stage, name), by: "ann".into(), since: Timestamp(0) }
    }

    #[test]
    fn a_persons_word_is_good_until_the_file_says_paused_no_longer() {
        let shop = |paused: bool| {
            let web = deployment_config("web", "a", 1, json!({"paused": paused}));
            Arc::new(project(Shipyard::implicit(), &[web]))
        };
        let words = [lifted("default", "web"), lifted("default", "gone"), lifted("gone", "web")];
        let (let_go, good) = lift(&shop(true), &words);
        assert_eq!(*let_go, *shop(false), "as if its file did not say it");
        assert_eq!(good, words[..1]);
        let (same, good) = lift(&shop(false), &words);
        assert_eq!((&*same, good), (&*shop(false), Vec::new()));
    }
}
