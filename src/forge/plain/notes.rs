//! Statuses as Git notes: one line a context.

use std::sync::Arc;

use async_trait::async_trait;

use tokio::sync::Semaphore;

use crate::error::{Context, Result};
use crate::forge::text::one_line;
use crate::forge::{Refusal, StatusWriter};
use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, WriterName};

/// A note is read in a terminal; what is longer belongs on the run's page.
const DESCRIPTION_LIMIT: usize = 500;

/// Contexts are made of names, which are shorter; the bound is for those that come from files.
const CONTEXT_LIMIT: usize = 255;

/// Statuses of one call. All of them become one commit of the notes' history, and one push.
const BATCH: usize = 500;

/// What a note says about one context of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteLine {
    /// The commit that the note is on.
    pub commit: CommitId,
    /// What the line is about. A note has one line a context: this one replaces an earlier one.
    pub context: String,
    /// The whole line, `<state> <context> <description>`, without a line break.
    pub line: String,
}

/// Where Git notes are kept.
pub trait Notes: Send + Sync {
    /// Replaces lines of notes and shares the result with the watched repository. Writing the same lines again changes
    /// nothing; lines of other contexts stay. Blocks.
    fn write(&self, lines: Vec<NoteLine>) -> Result<()>;
}

/// Writes statuses as Git notes.
pub struct NotesWriter {
    notes: Arc<dyn Notes>,
    /// Writing blocks a thread, also one whose caller has given up waiting: a remote that hangs must not take more.
    turn: Arc<Semaphore>,
}

impl NotesWriter {
    /// A writer to these notes.
    pub fn new(notes: Arc<dyn Notes>) -> Self {
        Self { notes, turn: Arc::new(Semaphore::new(1)) }
    }
}

impl std::fmt::Debug for NotesWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotesWriter").finish_non_exhaustive()
    }
}

#[async_trait]
impl StatusWriter for NotesWriter {
    fn name(&self) -> WriterName {
        "notes".into()
    }

    async fn write(&self, statuses: &[CommitStatus]) -> Result<(), Refusal> {
        let interrupted = || "writing Git notes was interrupted".to_owned();
        let turn = Arc::clone(&self.turn).acquire_owned().await.or_transient(interrupted)?;
        let lines = statuses.iter().map(note_line).collect();
        let notes = Arc::clone(&self.notes);
        let write = move || {
            let written = notes.write(lines);
            drop(turn);
            written
        };
        Ok(tokio::task::spawn_blocking(write).await.or_transient(interrupted)??)
    }

    fn batch(&self) -> usize {
        BATCH
    }
}

fn note_line(status: &CommitStatus) -> NoteLine {
    // A space would end the context in the eyes of whoever reads the line.
    let context = one_line(&status.context, CONTEXT_LIMIT).replace(' ', "-");
    let description = one_line(&status.description, DESCRIPTION_LIMIT);
    let line = format!("{} {context} {description}", status.state).trim_end().to_owned();
    NoteLine { commit: status.commit.clone(), context, line }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::error::{Class, Failure};
    use crate::model::commit_status::StatusState;

    fn status(context: &str, state: StatusState, description: &str) -> CommitStatus {
        CommitStatus {
            path: Some("/runs/7".to_owned()),
            ..CommitStatus::new(CommitId::from("1111111111111111111111111111111111111111"), context, state, description)
        }
    }

    #[test]
    fn a_status_is_one_line() {
        let cases = [
            (status("launchway/dev", StatusState::Running, "2 of 3 services"), "running launchway/dev 2 of 3 services"),
            (status("launchway/plan", StatusState::Success, ""), "success launchway/plan"),
            (
                status("launchway/dev/web/pre", StatusState::Failure, "exit code 3\nerror: \u{1b}[31mno table\r\n"),
                "failure launchway/dev/web/pre exit code 3 error: [31mno table",
            ),
            (status("launchway/odd name\n", StatusState::Cancelled, "by ann"), "cancelled launchway/odd-name by ann"),
        ];
        for (status, expected) in cases {
            assert_eq!(note_line(&status).line, expected);
        }
    }

    proptest! {
        #[test]
        fn a_line_reads_back_as_its_parts(context in "\\PC*", description in any::<String>()) {
            let note = note_line(&status(&context, StatusState::Error, &description));
            prop_assert!(!note.line.contains(char::is_control));
            prop_assert!(note.line.chars().count() <= "failure".len() + CONTEXT_LIMIT + DESCRIPTION_LIMIT + 2);
            let mut words = note.line.splitn(3, ' ');
            prop_assert_eq!(words.next(), Some("error"));
            prop_assert_eq!(words.next().unwrap_or_default(), note.context);
        }
    }

    #[derive(Default)]
    struct Recorded(Mutex<Vec<NoteLine>>);

    impl Notes for Recorded {
        fn write(&self, lines: Vec<NoteLine>) -> Result<()> {
            if lines.is_empty() {
                return Err(Failure::stalled("nothing to write"));
            }
            self.0.lock().unwrap().extend(lines);
            Ok(())
        }
    }

    #[tokio::test]
    async fn lines_are_written_in_order_and_failures_come_back() {
        let notes = Arc::new(Recorded::default());
        let writer = NotesWriter::new(Arc::clone(&notes) as Arc<dyn Notes>);
        let statuses = [
            status("launchway/dev", StatusState::Pending, "queued"),
            status("launchway/dev", StatusState::Success, ""),
        ];
        writer.write(&statuses).await.unwrap();
        let lines: Vec<String> = notes.0.lock().unwrap().iter().map(|note| note.line.clone()).collect();
        assert_eq!(lines, ["pending launchway/dev queued", "success launchway/dev"]);
        assert!(matches!(writer.write(&[]).await, Err(Refusal::All(failure)) if failure.class() == Class::Stalled));
    }
}
