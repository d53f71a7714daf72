//! What an answer of Gitea's API means for the one who asked.

use http::StatusCode;

use crate::error::Failure;
use crate::forge::Refusal;
use crate::model::ids::CommitId;

/// Why an answer that is not 2xx refuses to write, or read, the statuses of `commit`. `text` is what the server says.
pub(super) fn refusal(status: StatusCode, text: &str, commit: &CommitId) -> Refusal {
    let stalled = |message: String| Failure::stalled(message);
    match status.as_u16() {
        // Gitea answers 500 for writing to a commit that it does not have.
        404 | 500 if text.contains("object does not exist") => Refusal::Commit(gone(commit)),
        401 => Refusal::All(
            stalled("Gitea does not accept the token".to_owned())
                .hint("write a valid token with the scope write:repository into the file of `credentials.tokenFile`"),
        ),
        403 => Refusal::All(
            stalled("the token may not write commit statuses".to_owned())
                .hint("the token lacks write:repository, or its user may not write to the repository"),
        ),
        404 => Refusal::All(
            stalled("Gitea does not know the repository, or does not show it to the token's user".to_owned())
                .hint("check the repository's address and the token's user"),
        ),
        300..=399 => Refusal::All(
            stalled(format!("Gitea redirects to another host ({status}), which does not get the token"))
                .hint("set the repository's and the forge's addresses to where they are now"),
        ),
        408 | 425 | 429 | 500..=599 => Refusal::Busy(Failure::transient(format!("Gitea answers {status}"))),
        _ => Refusal::Commit(stalled(format!("Gitea refuses the status of {}: {status}", commit.short()))),
    }
}

fn gone(commit: &CommitId) -> Failure {
    Failure::stalled(format!("Gitea does not have the commit {} any more", commit.short()))
        .hint("its branch may have been rewritten")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    #[test]
    fn answers_say_who_acts_next_and_what_is_concerned() {
        let commit = CommitId::from("1111111111111111111111111111111111111111");
        let gone = r#"{"message":"GetCommit[1111]: object does not exist [id: 1111, rel_path: ]"}"#;
        let cases = [
            (401, "", "all", Class::Stalled),
            (403, "", "all", Class::Stalled),
            (404, "", "all", Class::Stalled),
            (404, gone, "commit", Class::Stalled),
            (301, "", "all", Class::Stalled),
            (307, "", "all", Class::Stalled),
            (422, "", "commit", Class::Stalled),
            (423, "", "commit", Class::Stalled),
            (500, gone, "commit", Class::Stalled),
            (500, "database is locked", "busy", Class::Transient),
            (503, gone, "busy", Class::Transient),
            (429, "", "busy", Class::Transient),
            (408, "", "busy", Class::Transient),
        ];
        for (status, text, concerned, class) in cases {
            let refusal = refusal(StatusCode::from_u16(status).unwrap(), text, &commit);
            let found = match &refusal {
                Refusal::Commit(_) => "commit",
                Refusal::All(_) => "all",
                Refusal::Busy(_) => "busy",
            };
            assert_eq!((found, refusal.failure().class()), (concerned, class), "{status} {text}");
        }
    }
}
