//! Version 3: every action of the outbox has a priority.

use rusqlite::{Connection, params};
use serde_json::Value;

/// Timers and ends of pods go first.
const ENDING: u8 = 0;
/// Everything else, and what cannot be read.
const BEGINNING: u8 = 1;

/// Gives each action that waits the priority that it would be asked for with now.
pub(super) fn fill_in(connection: &Connection) -> rusqlite::Result<()> {
    let priorities: Vec<(i64, u8)> = connection
        .prepare("SELECT id, record FROM outbox")?
        .query_map([], |row| Ok((row.get(0)?, priority(row.get_ref(1)?.as_str()?))))?
        .collect::<rusqlite::Result<_>>()?;
    let mut fill_in = connection.prepare("UPDATE outbox SET priority = ? WHERE id = ?")?;
    for (id, priority) in priorities {
        fill_in.execute(params![priority, id])?;
    }
    Ok(())
}

fn priority(record: &str) -> u8 {
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    let action = &record["record"];
    match (action["action"].as_str(), action["timer"].as_str()) {
        (Some("stopPod"), _) | (Some("setTimer"), Some("deadline" | "progress" | "start" | "finish")) => ENDING,
        _ => BEGINNING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::action::Action;
    use crate::model::event::Timer;
    use crate::model::pod::PodId;
    use crate::model::time::Timestamp;
    use crate::store::record::encode;

    /// As long as actions are written as in version 2; once they are not, texts take their place.
    #[test]
    fn an_action_has_the_priority_with_which_it_would_be_asked_for() {
        let pod = PodId { namespace: "shop-dev".into(), name: "web-1-pre".into() };
        let report = Action::Report { repository: "shop".into(), commit: "1".into(), writer: "notes".into() };
        let timers = Timer::ALL.map(|timer| Action::SetTimer { timer, due: Timestamp(0) });
        for action in timers.into_iter().chain([Action::StopPod { pod }, report]) {
            assert_eq!(priority(&encode(&action).unwrap()), action.priority() as u8, "{action:?}");
        }
    }

    #[test]
    fn a_damaged_action_is_no_reason_not_to_migrate() {
        for text in ["", "{", "[]", r#"{"v":1,"record":7}"#] {
            assert_eq!(priority(text), BEGINNING);
        }
    }
}
