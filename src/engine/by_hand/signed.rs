//! What people say in signed commits: it counts once, and like what they say elsewhere. What has no effect is remembered, with why.

use super::decide::{Verdict, decide};
use crate::engine::records::{Lookup, Undecided};
use crate::engine::transition::Transition;
use crate::model::event::Event;
use crate::model::ids::{CommitId, RepositoryName, ServiceKey};
use crate::model::transaction::Write;

/// What a commit says of what waits for approval, or why that does not count.
pub type Signed<'a> = Result<(&'a ServiceKey, Verdict<'a>), &'a str>;

/// Carries out what a commit says in its trailer number `place`, unless that was done before.
///
/// # Errors
/// If something must be read first.
pub fn decide_signed(
    transition: &mut Transition<'_>,
    repository: &RepositoryName,
    (commit, place): (&CommitId, usize),
    signed: Signed<'_>,
) -> Result<(), Undecided> {
    let whose = signed.map_or_else(
        |_| String::new(),
        |(service, verdict)| match verdict.meant.run {
            Some(run) => format!("{service} {run}"),
            None => service.to_string(),
        },
    );
    let once = format!("approval {commit} {place} {whose}");
    if transition.records.number(Lookup::WasDelivered(repository.clone(), once.clone()))? > 0 {
        return Ok(());
    }
    let refused = match signed {
        Err(reason) => Some(reason.to_owned()),
        Ok((service, verdict)) => match decide(transition, service, verdict) {
            Ok(_run) => None,
            Err(Undecided::Refused(failure)) => Some(failure.to_string()),
            Err(needs @ Undecided::Needs(_)) => return Err(needs),
        },
    };
    let at = transition.now;
    if let Some(reason) = refused {
        let event = Box::new(Event::NotApproved { commit: commit.clone(), reason });
        transition.write(Write::Event { run: repository.events(), at, event });
    }
    transition.write(Write::Delivery { repository: repository.clone(), id: once, at });
    Ok(())
}
