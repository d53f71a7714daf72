//! What an answer of a host's API means for the one who asked.

use crate::error::Failure;
use crate::forge::Refusal;
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// What is said of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    /// Its name.
    pub(super) name: &'static str,
    /// What a token needs to write statuses.
    pub(super) rights: &'static str,
    /// What to do where the host does not accept it.
    pub(super) renewal: &'static str,
}

/// What to do about a token that a person has made.
pub(super) const TOKEN_FILE: &str = "write a valid token into the file of `credentials.tokenFile`";

/// What an answer means that only its host's manners tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// What was asked for is so already.
    Done,
    /// The commit is not there any more.
    Gone,
    /// The host keeps no more statuses of the commit in this context.
    Full,
    /// The host wants fewer requests; none until then, if it says so, or for a while.
    Limited(Option<Timestamp>),
}

/// Why an answer that is not 2xx refuses to write, or read, the statuses of `commit`, where its host means nothing else.
pub(super) fn refusal(words: Words, status: u16, commit: &CommitId) -> Refusal {
    let name = words.name;
    match status {
        401 | 403 | 404 | 300..=399 => Refusal::All(unanswered(words, status, "write commit statuses")),
        409 => Refusal::Busy(Failure::transient(format!("{name} answers {status}"))),
        408 | 425 | 429 | 500..=599 => Refusal::Busy(unanswered(words, status, "write commit statuses")),
        _ => Refusal::Commit(Failure::stalled(format!("{name} refuses the status of {}: {status}", commit.short()))),
    }
}

/// Why an answer that is not 2xx does not do what was asked for, whatever that was.
pub(super) fn unanswered(words: Words, status: u16, what: &str) -> Failure {
    let Words { name, rights, renewal } = words;
    match status {
        401 => Failure::stalled(format!("{name} does not accept the token")).hint(format!("{renewal}: {rights}")),
        403 => Failure::stalled(format!("the token may not {what}")).hint(rights),
        404 => {
            Failure::stalled(format!("{name} does not know the repository, or does not show it to the token's user"))
                .hint("check the repository's address, and that the token covers it")
        }
        300..=399 => {
            Failure::stalled(format!("{name} redirects to another host ({status}), which does not get the token"))
                .hint("set the repository's and the forge's addresses to where they are now")
        }
        408 | 425 | 429 | 500..=599 => Failure::transient(format!("{name} answers {status}")),
        _ => Failure::stalled(format!("{name} refuses to {what}: {status}")),
    }
}

/// The same, where the host means something else; nothing, if it means no refusal.
pub(super) fn meant(words: Words, meaning: Meaning, commit: &CommitId) -> Option<Refusal> {
    let name = words.name;
    Some(match meaning {
        Meaning::Done => return None,
        Meaning::Gone => Refusal::Commit(
            Failure::stalled(format!("{name} does not have the commit {} any more", commit.short()))
                .hint("its branch may have been rewritten"),
        ),
        Meaning::Full => Refusal::Commit(
            Failure::stalled(format!("{name} takes no more statuses of {} in a context", commit.short()))
                .hint("push another commit"),
        ),
        Meaning::Limited(_) => Refusal::Busy(Failure::transient(format!("{name} wants fewer requests"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    fn told(refusal: &Refusal) -> (&'static str, Class) {
        let concerned = match refusal {
            Refusal::Commit(_) => "commit",
            Refusal::All(_) => "all",
            Refusal::Busy(_) => "busy",
            Refusal::Environments { .. } => "environments",
        };
        (concerned, refusal.failure().class())
    }

    #[test]
    fn answers_say_who_acts_next_and_what_is_concerned() {
        let commit = CommitId::from("1111111111111111111111111111111111111111");
        let words = Words { name: "a host", rights: "more rights", renewal: TOKEN_FILE };
        for (status, expected) in [
            (401, ("all", Class::Stalled)),
            (403, ("all", Class::Stalled)),
            (404, ("all", Class::Stalled)),
            (301, ("all", Class::Stalled)),
            (307, ("all", Class::Stalled)),
            (400, ("commit", Class::Stalled)),
            (422, ("commit", Class::Stalled)),
            (423, ("commit", Class::Stalled)),
            (408, ("busy", Class::Transient)),
            (409, ("busy", Class::Transient)),
            (429, ("busy", Class::Transient)),
            (500, ("busy", Class::Transient)),
            (503, ("busy", Class::Transient)),
        ] {
            assert_eq!(told(&refusal(words, status, &commit)), expected, "{status}");
        }
        for (meaning, expected) in [
            (Meaning::Done, None),
            (Meaning::Gone, Some(("commit", Class::Stalled))),
            (Meaning::Full, Some(("commit", Class::Stalled))),
            (Meaning::Limited(None), Some(("busy", Class::Transient))),
        ] {
            assert_eq!(meant(words, meaning, &commit).as_ref().map(told), expected, "{meaning:?}");
        }
    }
}
