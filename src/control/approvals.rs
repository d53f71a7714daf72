//! What people say of what waits for approval in the trailers of commits, where the configuration says whose signatures count.

use std::path::Path;
use std::sync::Arc;

use crate::control::commands::spoken::Spoken;
use crate::control::commands::{Command, Refusal, SequenceCommand};
use crate::control::watched::{READING, Watched};
use crate::engine::by_hand::{Meant, Verdict, decide_signed};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::executor::sync;
use crate::model::ids::{CommitId, ProjectName, RunId, ServiceKey, StageName};
use crate::model::run::Run;
use crate::model::trailer::trailers;
use crate::source::Said;

/// So many commits of one push are read, the newest.
const MOST_COMMITS: usize = 1000;
/// So many trailers of one commit.
const MOST_TRAILERS: usize = 20;

/// What the trailers are called, without regard to case, and whether what waits goes on.
const TRAILERS: [(&str, bool); 2] = [("launchway-approve", true), ("launchway-reject", false)];

/// What a trailer asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    approve: bool,
    /// Of what, in the words of the commands.
    of: String,
}

/// Carries out what commits say that came since the last time. Where nobody's signature counts, none of it ever will.
///
/// # Errors
/// If the repository, the signers or the store cannot be read now; then it is done after the next sync.
pub(super) async fn read(driver: &Driver, watched: &Arc<Watched>, allowed: Option<&Path>) -> Result<()> {
    let state = sync::state(driver, watched).await?.value;
    let (Some(head), Some(project)) = (state.applied.as_ref(), &state.project) else { return Ok(()) };
    let read = allowed.map(|_| head);
    if state.approvals_read.as_ref() == read {
        return Ok(());
    }
    if let (Some(allowed), Some(known)) = (allowed, state.approvals_read.clone()) {
        let head = head.clone();
        let said = watched.ask(READING, move |watched| {
            let repository = watched.mirror.open()?;
            match repository.contains(&known)? {
                true => repository.said_since(&known, &head, MOST_COMMITS),
                false => Ok(Vec::new()), // of rewritten history, nobody knows what is new
            }
        });
        for said in said.await? {
            carry_out(driver, watched, project, allowed, &said).await?;
        }
    }
    watched.note_approvals_read(driver, read).await
}

async fn carry_out(
    driver: &Driver,
    watched: &Arc<Watched>,
    project: &ProjectName,
    allowed: &Path,
    said: &Said,
) -> Result<()> {
    let asked = asked(&said.message);
    if asked.is_empty() {
        return Ok(());
    }
    let (commit, allowed) = (said.commit.clone(), allowed.to_owned());
    let signer = watched.ask(READING, move |watched| watched.mirror.signer(&commit, &allowed)).await?;
    for (place, asked) in asked.iter().enumerate() {
        let meant = match &signer {
            Ok(_) => meant(driver, project, asked, &said.commit).await?,
            Err(why) => Err(why.clone()),
        };
        let by = format!("git:{}", signer.as_deref().unwrap_or_default());
        let reason = format!("in {}", said.commit.short());
        let all: Vec<Result<&Waits, &str>> = match &meant {
            Ok(waiting) => waiting.iter().map(Ok).collect(),
            Err(why) => vec![Err(why)],
        };
        for waits in all {
            let signed = waits.map(|(service, run)| {
                let meant = Meant { run: run.as_ref().map(RunId::as_str), ..Meant::default() };
                (service, Verdict { approve: asked.approve, reason: &reason, meant, by: &by })
            });
            let at = (&said.commit, place);
            driver.decide(|transition| decide_signed(transition, &watched.name, at, signed)).await?;
        }
        if let Err(why) = meant {
            tracing::warn!(repository = %watched.name, commit = %said.commit, why, "a commit approves nothing");
        }
    }
    Ok(())
}

/// What waits: something of a service, or a run of it.
type Waits = (ServiceKey, Option<RunId>);

/// What is meant, or why there is none.
async fn meant(
    driver: &Driver,
    project: &ProjectName,
    asked: &Asked,
    commit: &CommitId,
) -> Result<Result<Vec<Waits>, String>> {
    let store = &*driver.store;
    if let ["-s" | "--stage", stage] = asked.of.split_whitespace().collect::<Vec<_>>()[..] {
        let waiting = waiting(driver, project, &stage.into()).await?;
        let nothing = || format!("nothing waits for approval in stage `{stage}`");
        return Ok(if waiting.is_empty() { Err(nothing()) } else { Ok(waiting) });
    }
    let word = if asked.approve { "approve" } else { "reject" };
    let spoken = match Spoken::read(&format!("launchway {word} {}", asked.of)) {
        Ok(spoken) => spoken,
        Err(failure) => return Ok(Err(failure.to_string())),
    };
    match spoken.meant(store, project, commit.short().to_owned()).await {
        Ok(Command::Sequence(SequenceCommand::Decide { service, run, .. })) => Ok(Ok(vec![(service, run)])),
        Ok(_) => Ok(Err("it approves or rejects nothing".to_owned())),
        Err(Refusal::Failed(failure)) => Err(failure),
        Err(Refusal::Unknown(failure) | Refusal::Conflict(failure) | Refusal::Invalid(failure)) => {
            Ok(Err(failure.one_line()))
        }
    }
}

/// All that waits for approval in a stage.
async fn waiting(driver: &Driver, project: &ProjectName, stage: &StageName) -> Result<Vec<Waits>, Failure> {
    let mut waiting = Vec::new();
    let slots = driver.store.open_slots(Some(project)).await?.into_iter().map(|slot| slot.value);
    for slot in slots.filter(|slot| &slot.service.stage == stage) {
        for id in slot.open() {
            let run = driver.store.run(id).await?.map(|run| run.value);
            if run.as_ref().and_then(Run::sequence).is_some_and(|run| run.awaits_approval().is_some()) {
                waiting.push((slot.service.clone(), Some(id.clone())));
            }
        }
    }
    Ok(waiting)
}

/// What a message asks for in its trailers.
fn asked(message: &str) -> Vec<Asked> {
    let asked = |(key, of): (&str, &str)| {
        let (_, approve) = TRAILERS.into_iter().find(|(name, _)| key.eq_ignore_ascii_case(name))?;
        Some(Asked { approve, of: of.to_owned() })
    };
    trailers(message).filter_map(asked).take(MOST_TRAILERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_stand_in_the_last_paragraph_of_a_message() {
        let asked = |message: &str| -> Vec<String> {
            let said = |it: Asked| format!("{} {}", if it.approve { "approve" } else { "reject" }, it.of);
            super::asked(message).into_iter().map(said).collect()
        };
        for (message, expected) in [
            ("Go\n\nLaunchway-Approve: web -s production\n", vec!["approve web -s production"]),
            ("Go\r\n\r\nSeen.\r\n\r\nlaunchway-APPROVE:web\r\nSigned-off-by: Ann\r\n", vec!["approve web"]),
            ("No\n\nLaunchway-Reject: web\nLaunchway-Approve: -s dev\n\n", vec!["reject web", "approve -s dev"]),
            ("Launchway-Approve: web", vec![]),
            ("Go\n\nLaunchway-Approve: web\n\nBut not yet.", vec![]),
            ("Go\n\n> Launchway-Approve: web", vec![]),
            ("Go\n\nLaunchway-Approve web", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(asked(message), expected, "{message}");
        }
        assert_eq!(asked(&format!("Go\n\n{}", "Launchway-Approve: web\n".repeat(50))).len(), MOST_TRAILERS);
    }
}
