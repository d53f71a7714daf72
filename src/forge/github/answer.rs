//! What an answer of GitHub's API means for the one who asked.

use serde::Deserialize;

use crate::error::Failure;
use crate::forge::Refusal;
use crate::model::ids::CommitId;

/// What GitHub says beside an answer that is not 2xx.
#[derive(Debug, Default, Deserialize)]
struct Said {
    #[serde(default)]
    message: String,
}

/// Why an answer that is not 2xx refuses to write, or read, the statuses of `commit`. `is_limited` says that its headers
/// tell of a spent limit.
pub(super) fn refusal(status: u16, body: &[u8], is_limited: bool, commit: &CommitId) -> Refusal {
    let said: Said = serde_json::from_slice(body).unwrap_or_default();
    let says = |words: &str| said.message.to_ascii_lowercase().contains(words) || contains(body, words);
    let stalled = |message: &str| Failure::stalled(message.to_owned());
    match status {
        401 => Refusal::All(
            stalled("GitHub does not accept the token")
                .hint("write a valid token into the file of `credentials.tokenFile`"),
        ),
        403 | 429 if is_limited || says("rate limit") || says("abuse") || says("blocked from content creation") => {
            Refusal::Busy(Failure::transient("GitHub wants fewer requests".to_owned()))
        }
        403 => Refusal::All(
            stalled("the token may not write commit statuses")
                .hint("give a fine-grained token `Commit statuses: read and write` for the repository"),
        ),
        404 => Refusal::All(
            stalled("GitHub does not know the repository, or does not show it to the token's owner")
                .hint("check the repository's address, and that the token covers it"),
        ),
        422 if says("no commit found") => Refusal::Commit(
            Failure::stalled(format!("GitHub does not have the commit {} any more", commit.short()))
                .hint("its branch may have been rewritten"),
        ),
        422 if says("maximum number of statuses") => Refusal::Commit(
            Failure::stalled(format!("GitHub takes no more statuses of {} in a context", commit.short()))
                .hint("it keeps 1,000 of them; push another commit"),
        ),
        300..=399 => Refusal::All(
            Failure::stalled(format!("GitHub redirects to another host ({status}), which does not get the token"))
                .hint("set the repository's and the forge's addresses to where they are now"),
        ),
        408 | 409 | 425 | 429 | 500..=599 => Refusal::Busy(Failure::transient(format!("GitHub answers {status}"))),
        _ => Refusal::Commit(Failure::stalled(format!("GitHub refuses the status of {}: {status}", commit.short()))),
    }
}

/// What is wrong with a field stands deeper in the answer.
fn contains(body: &[u8], words: &str) -> bool {
    String::from_utf8_lossy(body).to_ascii_lowercase().contains(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    #[test]
    fn answers_say_who_acts_next_and_what_is_concerned() {
        let commit = CommitId::from("1111111111111111111111111111111111111111");
        let most = r#"{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"This SHA and context has reached the maximum number of statuses."}]}"#;
        let gone = r#"{"message":"No commit found for SHA: 1111"}"#;
        let secondary = r#"{"message":"You have exceeded a secondary rate limit. Please wait."}"#;
        let blocked = r#"{"message":"was submitted too quickly; blocked from content creation"}"#;
        for (status, body, is_limited, concerned, class) in [
            (401, r#"{"message":"Bad credentials"}"#, false, "all", Class::Stalled),
            (403, r#"{"message":"Resource not accessible by personal access token"}"#, false, "all", Class::Stalled),
            (403, secondary, false, "busy", Class::Transient),
            (403, blocked, false, "busy", Class::Transient),
            (403, "{}", true, "busy", Class::Transient),
            (429, "", false, "busy", Class::Transient),
            (404, r#"{"message":"Not Found"}"#, false, "all", Class::Stalled),
            (422, gone, false, "commit", Class::Stalled),
            (422, most, false, "commit", Class::Stalled),
            (422, "nonsense", false, "commit", Class::Stalled),
            (301, "", false, "all", Class::Stalled),
            (409, "", false, "busy", Class::Transient),
            (502, "<html>", false, "busy", Class::Transient),
        ] {
            let refusal = refusal(status, body.as_bytes(), is_limited, &commit);
            let found = match &refusal {
                Refusal::Commit(_) => "commit",
                Refusal::All(_) => "all",
                Refusal::Busy(_) => "busy",
            };
            assert_eq!((found, refusal.failure().class()), (concerned, class), "{status} {body}");
        }
    }
}
