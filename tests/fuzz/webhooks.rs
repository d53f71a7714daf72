//! Calls of Git hosts.

use launchway::forge::webhook::{Call, Host, Interest, Watching, interpret, verify};
use launchway::model::comment::Comment;
use launchway::model::rerun::Rerun;
use launchway::model::time::Timestamp;
use launchway::secret::Secret;

use crate::message;

/// When the calls of the corpus were signed: 2026-11-21T08:30:00Z.
const NOW: Timestamp = Timestamp(1_795_249_800_000);

/// What a call comes to: whose it is, whether it is authentic, and what it says.
pub(crate) fn receive(input: &[u8]) -> String {
    let (headers, body) = message::parts(input);
    let host = Host::identify(&headers);
    let authentic = verify(host, &[Secret::new("fuzz"), Secret::new("older")], &headers, body, NOW);
    let none = verify(host, &[Secret::new("")], &headers, body, NOW);
    assert!(none.is_err(), "a call is authentic without a secret");
    let Ok(call) = Call::read(host, body) else { return format!("{host:?} {authentic:?} malformed") };
    let id = host.delivery_id(&headers, &call);
    if let Ok(Some(id)) = &id {
        assert!((1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()), "the id `{id}`");
    }
    let mut end = format!("{host:?} {authentic:?} {:?}", id.is_ok());
    for watching in
        [Watching::default(), Watching { branch: Some("main"), pulls: true, commands: true, app: Some(1234) }]
    {
        let verdict = interpret(host, &headers, &call, watching);
        for commit in [&verdict.before, &verdict.after].into_iter().flatten() {
            assert!(commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "`{commit}` is no commit");
        }
        let told = [&verdict.event, &verdict.reference, &verdict.reason];
        let is_plain = |text: &&String| text.len() < 2_000 && !text.contains(char::is_control);
        assert!(told.into_iter().flatten().all(|text| is_plain(&text)), "{verdict:?}");
        let interest = match &verdict.interest {
            Interest::Asked(comment) => asked(comment),
            Interest::Again(rerun) => again(rerun),
            Interest::Accepted => "accepted".to_owned(),
            Interest::Ignored => "ignored".to_owned(),
        };
        end += &format!(" {interest} {:?}", verdict.reason);
    }
    end
}

/// What of a check that is asked for again is taken.
fn again(rerun: &Rerun) -> String {
    assert!(!rerun.login.contains(['/', ' ']) && rerun.login.is_ascii(), "{rerun:?}");
    assert!(rerun.commit.as_str().bytes().all(|byte| byte.is_ascii_hexdigit()), "{rerun:?}");
    let is_plain = |name: &String| name.len() <= 255 && !name.contains(char::is_control);
    assert!(rerun.context.iter().all(is_plain), "{rerun:?}");
    format!("again {:?}", rerun.context.is_some())
}

/// What of a comment is taken.
fn asked(comment: &Comment) -> String {
    for line in &comment.commands {
        assert!(line.starts_with("/launchway") && line.len() < 2_000 && !line.contains(char::is_control), "`{line}`");
    }
    let login = &comment.author.login;
    assert!(
        !login.contains('/') && login.bytes().any(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    );
    format!("asked {}", comment.commands.len())
}
