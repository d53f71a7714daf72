//! What calls say about checks that people ask for again.

use serde_json::Value;

use super::comment::is_path;
use crate::model::ids::CommitId;
use crate::model::rerun::Rerun;

/// The most bytes of the name of a check.
const LONGEST_NAME: usize = 255;

/// A check that is asked for again, in the words of its host.
#[derive(Clone, Debug, Default)]
pub(in crate::forge) struct Again {
    /// Whether it is; else something else has happened to it.
    pub(in crate::forge) is_asked_for: bool,
    /// The App that made it.
    pub(in crate::forge) app: Option<u64>,
    pub(in crate::forge) repository: Option<String>,
    pub(in crate::forge) login: Option<String>,
    pub(in crate::forge) commit: Option<String>,
    /// Its name; nothing, if all of the commit are meant.
    pub(in crate::forge) context: Option<String>,
}

/// How a host tells of checks that are asked for again.
#[derive(Clone, Copy, Debug)]
pub struct Reruns {
    /// The names of events about them.
    pub(in crate::forge) events: &'static [&'static str],
    pub(in crate::forge) read: fn(&Value) -> Again,
}

impl Reruns {
    /// Those of a host that has none.
    pub(in crate::forge) const NONE: Self = Self { events: &[], read: |_| Again::default() };
}

/// The check of the App of this id that a call tells of.
///
/// # Errors
/// Why it is of no interest.
pub(super) fn rerun(again: Again, ours: u64) -> Result<Rerun, String> {
    if !again.is_asked_for {
        return Err("nobody asks for the check again".to_owned());
    }
    if again.app != Some(ours) {
        return Err("the check is another App's".to_owned());
    }
    if again.context.as_ref().is_some_and(|name| name.len() > LONGEST_NAME || name.contains(char::is_control)) {
        return Err("the check is none of launchway's".to_owned());
    }
    let missing = |what: &str| format!("the call does not say {what}");
    let login = again.login.filter(|login| is_path(login) && !login.contains('/'));
    Ok(Rerun {
        repository: again
            .repository
            .filter(|path| is_path(path))
            .ok_or_else(|| missing("in which repository it is"))?,
        login: login.ok_or_else(|| missing("who asks, by a name of letters, digits and `-_.~`"))?,
        commit: again.commit.as_deref().and_then(CommitId::word).ok_or_else(|| missing("on which commit it is"))?,
        context: again.context,
    })
}
