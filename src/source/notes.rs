//! Results as Git notes in `refs/notes/launchway`, one line a context: `<state> <context> <description>`.
//!
//! Several writers may share the reference. Nobody's lines are ever lost, because a batch is not merged as a tree but
//! applied again, line by line, to whatever the remote has now, until the remote takes it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use git2::{FileMode, ObjectType, Oid};

use super::git::{self, existing, failed, oid};
use super::mirror::Mirror;
use super::push::{Pushed, Update, means_moved, push};
use super::{Remote, local};
use crate::error::{Failure, Result};
use crate::model::ids::CommitId;
use crate::model::time::Timestamp;

/// Where notes are, on both sides.
pub const NOTES_REF: &str = "refs/notes/launchway";

/// How often a batch is applied again when others write at the same time.
const MAX_ATTEMPTS: u32 = 12;
/// So often it is tried although the remote's notes stay as they are: somebody may hold them who has not written yet.
const ATTEMPTS_IN_VAIN: u32 = 6;
/// The pause after the first lost race; it doubles up to a limit, and differs between processes.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// A lock is held for the moment in which a reference is written; the attempts last longer than this.
const LOCK_ABANDONED: Duration = Duration::from_secs(10);
/// Larger notes are somebody else's, and are left alone.
pub(super) const MAX_NOTE_BYTES: u64 = 1 << 20;
/// Git writes at most two hex digits a level; nineteen levels leave one name.
const MAX_FANOUT: usize = 19;

/// One line on one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteLine {
    /// The commit.
    pub commit: CommitId,
    /// The context; the commit's line of the same context is replaced.
    pub context: String,
    /// The whole line, `<state> <context> <description>`.
    pub line: String,
}

/// Who writes, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// A name.
    pub name: String,
    /// An address; it need not exist.
    pub email: String,
    /// The time of the notes' commit.
    pub at: Timestamp,
}

/// What became of one attempt.
enum Attempt {
    Written,
    /// Someone else was first, it seems: these were the words.
    Lost(String),
}

impl Mirror {
    /// Writes lines to the watched repository, in one commit. Lines that are there already cost nothing.
    ///
    /// Fails as `Transient` if the remote cannot be reached or others are faster all the time, and as `Stalled` if it
    /// refuses to be written to.
    pub fn write_notes(&self, remote: &Remote, lines: &[NoteLine], author: &Signature) -> Result<()> {
        self.try_to_write(remote, lines, author).map_err(|failure| self.explained(failure))
    }

    fn try_to_write(&self, remote: &Remote, lines: &[NoteLine], author: &Signature) -> Result<()> {
        let (mut known, mut in_vain) = (None, 0);
        for attempt in 0..MAX_ATTEMPTS {
            let opened = self.open()?;
            let old = self.renew_notes(&opened.git, remote, attempt)?;
            let lost = match self.write_onto(&opened.git, remote, old, lines, author)? {
                Attempt::Written => {
                    drop(opened);
                    return self.consolidate();
                }
                Attempt::Lost(words) => words,
            };
            // A race has a winner. Where the notes stay as they are, it was none.
            in_vain = if attempt > 0 && known == Some(old) { in_vain + 1 } else { 0 };
            if in_vain >= ATTEMPTS_IN_VAIN && !remote.url.local_path().is_some_and(is_locked) {
                return Err(not_taken(remote, lost));
            }
            known = Some(old);
            std::thread::sleep(pause(attempt, std::process::id()));
        }
        Err(Failure::transient(format!("others write notes to `{}` all the time", remote.url)))
    }

    /// What the notes are now. Of a remote that is only asked if they are not what they were when we wrote last.
    fn renew_notes(&self, mirror: &git2::Repository, remote: &Remote, attempt: u32) -> Result<Option<Oid>> {
        let describe = || "cannot read the notes in the mirror".to_owned();
        let notes = match remote.url.local_path() {
            Some(path) => take_over(mirror, path, self.most(None))?,
            None if attempt > 0 => {
                let notes = self.download(mirror, remote, NOTES_REF, None)?;
                refuse_others(mirror, notes)?;
                notes
            }
            None => return existing(mirror.refname_to_id(NOTES_REF)).map_err(failed(describe)),
        };
        self.record_notes(mirror, notes)?;
        Ok(notes)
    }

    fn write_onto(
        &self,
        mirror: &git2::Repository,
        remote: &Remote,
        old: Option<Oid>,
        lines: &[NoteLine],
        author: &Signature,
    ) -> Result<Attempt> {
        let Some(new) = apply(mirror, old, lines, author)?.filter(|new| Some(*new) != old) else {
            return Ok(Attempt::Written);
        };
        let outcome = push_notes(mirror, remote, old, new)?;
        if matches!(outcome, Attempt::Written) {
            self.record_notes(mirror, Some(new))?;
        }
        Ok(outcome)
    }
}

/// Brings the notes of a repository on this machine here.
fn take_over(mirror: &git2::Repository, path: &Path, most: u64) -> Result<Option<Oid>> {
    let source = git::open_local(path)?;
    let describe = || format!("cannot read the notes in `{}`", path.display());
    let notes = existing(source.refname_to_id(NOTES_REF)).map_err(failed(describe))?;
    refuse_others(&source, notes)?;
    if let Some(notes) = notes {
        local::import(&source, mirror, (NOTES_REF, notes), most)?;
    }
    Ok(notes)
}

/// Notes are commits: somebody has made a reference of that name for something else.
fn refuse_others(repository: &git2::Repository, notes: Option<Oid>) -> Result<()> {
    let describe = || format!("cannot read what `{NOTES_REF}` points at");
    match notes.map(|id| git::is_commit(repository, id)).transpose().map_err(failed(describe))? {
        Some(false) => Err(Failure::stalled(format!("`{NOTES_REF}` points at no commit, so no note can be written"))
            .hint(format!("delete it: `git push --delete REMOTE {NOTES_REF}`"))),
        Some(true) | None => Ok(()),
    }
}

fn not_taken(remote: &Remote, words: String) -> Failure {
    Failure::stalled(format!("`{}` does not take notes", remote.url))
        .hint(format!("allow pushing to `{NOTES_REF}`, or set `notes: false`"))
        .because(words)
}

/// Whether somebody writes notes in a repository on this machine. Removes the lock of a writer that was killed while it
/// moved our own reference: nobody else ever would.
fn is_locked(path: &Path) -> bool {
    let Ok(repository) = git::open_local(path) else { return false };
    let lock = repository.commondir().join(format!("{NOTES_REF}.lock"));
    let Ok(modified) = std::fs::metadata(&lock).and_then(|metadata| metadata.modified()) else { return false };
    let abandoned = modified.elapsed().is_ok_and(|age| age > LOCK_ABANDONED);
    if abandoned && let Err(error) = std::fs::remove_file(&lock) {
        tracing::warn!(%error, lock = %lock.display(), "cannot remove an abandoned lock");
        return false;
    }
    true
}

fn push_notes(mirror: &git2::Repository, remote: &Remote, old: Option<Oid>, new: Oid) -> Result<Attempt> {
    match push(mirror, remote, Update { reference: NOTES_REF, old, new: Some(new) })? {
        Pushed::Taken => Ok(Attempt::Written),
        Pushed::Moved => Ok(Attempt::Lost("somebody has written notes meanwhile".to_owned())),
        Pushed::Refused(reason) if means_moved(&reason) => Ok(Attempt::Lost(reason)),
        Pushed::Refused(reason) => Err(not_taken(remote, reason)),
    }
}

/// How long to wait after a lost race. Two processes that lost against each other must not meet again.
fn pause(attempt: u32, process: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempt.min(16)).min(MAX_PAUSE);
    let part = process.wrapping_mul(2_654_435_761).wrapping_add(attempt.wrapping_mul(40_503)) % 1000;
    doubled.mul_f64(0.5 + f64::from(part) / 1000.0)
}

/// Makes the commit that has `lines` in it on top of `parent`; `parent` itself if it has them all.
fn apply(
    repository: &git2::Repository,
    parent: Option<Oid>,
    lines: &[NoteLine],
    author: &Signature,
) -> Result<Option<Oid>> {
    let describe = || "cannot write notes".to_owned();
    let parent = parent.map(|id| repository.find_commit(id)).transpose().map_err(failed(describe))?;
    let old_tree = parent.as_ref().map(git2::Commit::tree).transpose().map_err(failed(describe))?;
    let mut update = git2::build::TreeUpdateBuilder::new();
    let mut commits = 0;
    for (commit, lines) in by_commit(lines) {
        if apply_to_commit(repository, old_tree.as_ref(), oid(commit.as_str())?, &lines, &mut update)? {
            commits += 1;
        }
    }
    if commits == 0 {
        return Ok(parent.map(|parent| parent.id()));
    }
    let baseline = match old_tree {
        Some(tree) => tree,
        None => empty_tree(repository).map_err(failed(describe))?,
    };
    let tree = update.create_updated(repository, &baseline).map_err(failed(describe))?;
    let tree = repository.find_tree(tree).map_err(failed(describe))?;
    let at = git2::Time::new(author.at.0.div_euclid(1000), 0);
    let signature = git2::Signature::new(&author.name, &author.email, &at).map_err(failed(describe))?;
    let message = format!("Notes on {commits} commit{}\n", if commits == 1 { "" } else { "s" });
    let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
    repository.commit(None, &signature, &signature, &message, &tree, &parents).map(Some).map_err(failed(describe))
}

fn empty_tree(repository: &git2::Repository) -> Result<git2::Tree<'_>, git2::Error> {
    let id = repository.treebuilder(None)?.write()?;
    repository.find_tree(id)
}

fn by_commit(lines: &[NoteLine]) -> BTreeMap<&CommitId, Vec<&NoteLine>> {
    let mut commits: BTreeMap<&CommitId, Vec<&NoteLine>> = BTreeMap::new();
    for line in lines {
        commits.entry(&line.commit).or_default().push(line);
    }
    commits
}

/// Adds the new note of one commit to `update`; false if nothing changes.
fn apply_to_commit(
    repository: &git2::Repository,
    notes: Option<&git2::Tree<'_>>,
    commit: Oid,
    lines: &[&NoteLine],
    update: &mut git2::build::TreeUpdateBuilder,
) -> Result<bool> {
    let describe = || format!("cannot write the note on `{commit}`");
    let place = match notes {
        Some(tree) => find(repository, tree, commit)?,
        None => Place::new(commit),
    };
    let old = place.content(repository)?;
    let new = replace_lines(&old, lines);
    if new == old {
        return Ok(false);
    }
    let blob = repository.blob(&new).map_err(failed(describe))?;
    update.upsert(place.path, blob, FileMode::Blob);
    Ok(true)
}

/// The note's text with each line's context replaced, and everything else, byte by byte, as it was.
fn replace_lines(note: &[u8], lines: &[&NoteLine]) -> Vec<u8> {
    let ended = note.strip_suffix(b"\n").unwrap_or(note);
    let mut kept: Vec<Vec<u8>> =
        if note.is_empty() { Vec::new() } else { ended.split(is_newline).map(<[u8]>::to_vec).collect() };
    for line in lines {
        let text = line.line.split_whitespace().collect::<Vec<_>>().join(" ").into_bytes();
        match kept.iter_mut().find(|kept| context(kept) == Some(line.context.as_bytes())) {
            Some(place) => *place = text,
            None => kept.push(text),
        }
    }
    kept.into_iter().flat_map(|line| line.into_iter().chain([b'\n'])).collect()
}

fn is_newline(byte: &u8) -> bool {
    *byte == b'\n'
}

fn context(line: &[u8]) -> Option<&[u8]> {
    line.split(|byte| *byte == b' ').nth(1)
}

/// Where a commit's note is or will be in the notes' tree.
struct Place {
    path: String,
    blob: Option<Oid>,
}

impl Place {
    /// One level of folders keeps each of them small; readers take any number of levels.
    fn new(commit: Oid) -> Self {
        let name = commit.to_string();
        let (folder, rest) = name.split_at(2);
        Self { path: format!("{folder}/{rest}"), blob: None }
    }

    fn content(&self, repository: &git2::Repository) -> Result<Vec<u8>> {
        let Some(blob) = self.blob else { return Ok(Vec::new()) };
        let describe = || format!("cannot read the note `{}`", self.path);
        // Its size is known without it: a small pack may hold a large one.
        let (size, _kind) = repository.odb().and_then(|odb| odb.read_header(blob)).map_err(failed(describe))?;
        if u64::try_from(size).is_ok_and(|size| size > MAX_NOTE_BYTES) {
            return Err(Failure::stalled(format!("the note `{}` is larger than {MAX_NOTE_BYTES} bytes", self.path)));
        }
        Ok(repository.find_blob(blob).map_err(failed(describe))?.content().to_vec())
    }
}

/// Finds a commit's note, under as many levels of folders as its writer liked.
fn find(repository: &git2::Repository, notes: &git2::Tree<'_>, commit: Oid) -> Result<Place> {
    let describe = || format!("cannot read the note on `{commit}`");
    let name = commit.to_string();
    let mut tree = notes.clone();
    let mut path = String::new();
    for level in 0..=MAX_FANOUT {
        let rest = name.get(level * 2..).unwrap_or_default();
        if let Some(note) = tree.get_name(rest).filter(|entry| entry.kind() == Some(ObjectType::Blob)) {
            return Ok(Place { path: path + rest, blob: Some(note.id()) });
        }
        let folder = rest.get(..2).unwrap_or_default();
        let next = tree.get_name(folder).filter(|entry| entry.kind() == Some(ObjectType::Tree)).map(|entry| entry.id());
        let Some(next) = next else { break };
        path = format!("{path}{folder}/");
        tree = repository.find_tree(next).map_err(failed(describe))?;
    }
    let depth = path.len() / 3 * 2;
    let rest = name.get(depth..).unwrap_or_default();
    Ok(if path.is_empty() { Place::new(commit) } else { Place { path: path + rest, blob: None } })
}

/// The text of the note on `commit`; empty without one.
pub(super) fn read(repository: &git2::Repository, commit: Oid) -> Result<String> {
    let describe = || format!("cannot read the notes in `{NOTES_REF}`");
    let Some(reference) = existing(repository.find_reference(NOTES_REF)).map_err(failed(describe))? else {
        return Ok(String::new());
    };
    let notes = reference.peel_to_tree().map_err(failed(describe))?;
    let content = find(repository, &notes, commit)?.content(repository)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(context: &str, line: &str) -> NoteLine {
        NoteLine { commit: "c".into(), context: context.to_owned(), line: line.to_owned() }
    }

    #[test]
    fn a_line_replaces_that_of_its_context_and_no_other() {
        let note = b"running launchway/dev deploying\nsuccess launchway/plan 2 changes\nhand \xff written\r\n\nx";
        let done = line("launchway/dev", "success launchway/dev took\n3 s");
        let new = line("launchway/production", "pending launchway/production waits");
        let expected = b"success launchway/dev took 3 s\nsuccess launchway/plan 2 changes\nhand \xff written\r\n\nx\n\
            pending launchway/production waits\n";
        assert_eq!(replace_lines(note, &[&done, &new]), expected);
    }

    #[test]
    fn writing_the_same_again_changes_nothing() {
        let one = line("launchway/dev", "success launchway/dev ok");
        let note = replace_lines(b"", &[&one]);
        assert_eq!(note, b"success launchway/dev ok\n");
        assert_eq!(replace_lines(&note, &[&one]), note);
    }

    #[test]
    fn a_context_that_begins_like_another_is_another() {
        let note = replace_lines(b"", &[&line("launchway/dev/web", "success launchway/dev/web ok")]);
        let note = replace_lines(&note, &[&line("launchway/dev", "success launchway/dev ok")]);
        assert_eq!(note.split_inclusive(is_newline).count(), 2);
    }

    #[test]
    fn pauses_grow_are_bounded_and_differ() {
        assert!(pause(0, 1) < pause(4, 1));
        assert!((0..100).all(|attempt| pause(attempt, 7) <= MAX_PAUSE * 2));
        assert_ne!(pause(2, 1), pause(2, 2));
    }

    #[test]
    fn lost_races_are_told_from_refusals() {
        for reason in ["failed to update ref", "fetch first", "cannot lock ref 'refs/notes/launchway'"] {
            assert!(means_moved(reason), "{reason}");
        }
        for reason in ["pre-receive hook declined", "deny updating a hidden ref", "protected branch hook declined"] {
            assert!(!means_moved(reason), "{reason}");
        }
    }
}
