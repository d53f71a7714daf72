//! What an answer of GitLab's API means for the one who asked.

use crate::error::Failure;
use crate::forge::Refusal;
use crate::model::ids::CommitId;

/// Why an answer that is not 2xx refuses to write, or read, the statuses of `commit`; nothing, if it only says that the
/// status is as it should be.
pub(super) fn refusal(status: u16, text: &str, commit: &CommitId) -> Option<Refusal> {
    let stalled = |message: &str| Failure::stalled(message.to_owned());
    Some(match status {
        // Somebody else has written the same state meanwhile.
        400 if text.contains("Cannot transition status") => return None,
        401 => Refusal::All(
            stalled("GitLab does not accept the token")
                .hint("write a valid token into the file of `credentials.tokenFile`"),
        ),
        403 => Refusal::All(
            stalled("the token may not write commit statuses")
                .hint("give a project access token the scope `api` and the role Developer"),
        ),
        404 if text.contains("Commit") || text.contains("Reference") => Refusal::Commit(
            Failure::stalled(format!("GitLab does not have the commit {} any more", commit.short()))
                .hint("its branch may have been rewritten"),
        ),
        404 => Refusal::All(
            stalled("GitLab does not know the project, or does not show it to the token's owner")
                .hint("check the repository's address, and that the token is of this project or a group of it"),
        ),
        300..=399 => Refusal::All(
            Failure::stalled(format!("GitLab redirects to another host ({status}), which does not get the token"))
                .hint("set the repository's and the forge's addresses to where they are now"),
        ),
        408 | 409 | 425 | 429 | 500..=599 => Refusal::Busy(Failure::transient(format!("GitLab answers {status}"))),
        _ => Refusal::Commit(Failure::stalled(format!("GitLab refuses the status of {}: {status}", commit.short()))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    #[test]
    fn answers_say_who_acts_next_and_what_is_concerned() {
        let commit = CommitId::from("1111111111111111111111111111111111111111");
        let transition = r#"{"message":"Cannot transition status via :run from :running"}"#;
        for (status, text, expected) in [
            (400, transition, None),
            (400, r#"{"message":"name is too long"}"#, Some(("commit", Class::Stalled))),
            (401, "", Some(("all", Class::Stalled))),
            (403, "", Some(("all", Class::Stalled))),
            (404, r#"{"message":"404 Commit Not Found"}"#, Some(("commit", Class::Stalled))),
            (404, r#"{"message":"404 Project Not Found"}"#, Some(("all", Class::Stalled))),
            (409, "", Some(("busy", Class::Transient))),
            (429, "Retry later", Some(("busy", Class::Transient))),
            (502, "", Some(("busy", Class::Transient))),
        ] {
            let refusal = refusal(status, text, &commit);
            let found = refusal.as_ref().map(|refusal| {
                let concerned = match refusal {
                    Refusal::Commit(_) => "commit",
                    Refusal::All(_) => "all",
                    Refusal::Busy(_) => "busy",
                };
                (concerned, refusal.failure().class())
            });
            assert_eq!(found, expected, "{status} {text}");
        }
    }
}
