//! Pods whose records cannot be read, so that nobody can tell whose they are. A living shim knows all that its pod's files
//! said and writes them anew; what has no process any more goes, so that another pod can take its place.

use std::thread;
use std::time::{Duration, Instant};

use super::paths::PodDir;
use super::start;
use super::table::Entry;
use crate::error::{Context, Failure, Result};
use crate::model::pod::{ObservedPod, Origin, PodId, PodOwner, PodPhase};
use crate::model::time::Timestamp;
use crate::runtime::RuntimeChange;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;
use crate::runtime::local::host::process;
use crate::runtime::local::runtime::Inner;
use crate::runtime::local::shim::wake;

/// How long a shim may take to write its files anew; then it is asked to end, because one of an earlier program cannot.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how long a daemon that starts waits until all files can be read.
const AT_START: Duration = Duration::from_secs(2);
/// How often it reads them meanwhile.
const READ_AGAIN: Duration = Duration::from_millis(10);

/// A pod whose records cannot be read.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Its folder.
    pub(crate) dir: PodDir,
    since: Instant,
    found_at: Timestamp,
    /// What is known of it and what to do, for people.
    message: String,
}

/// What a folder, and the processes around it, say.
struct Facts {
    /// Why it cannot be read.
    why: Failure,
    /// Whether that never changes by itself.
    is_damaged: bool,
    has_shim: bool,
    since: Duration,
    /// Processes that bear its mark.
    left: Vec<i32>,
}

/// What to do about it.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Its shim writes its files anew.
    AskForFiles,
    /// Its shim ends it.
    AskToEnd,
    /// Nothing of it runs any more.
    Forget,
    /// A person has to act.
    Leave,
}

fn judge(facts: &Facts) -> Step {
    match (facts.is_damaged, facts.has_shim) {
        (true, true) if facts.since > PATIENCE => Step::AskToEnd,
        (true, true) => Step::AskForFiles,
        (true, false) if facts.left.is_empty() => Step::Forget,
        (true, false) | (false, _) => Step::Leave,
    }
}

/// What people read.
fn message(facts: &Facts, step: &Step, dir: &PodDir) -> String {
    let (why, dir) = (facts.why.one_line(), dir.path().display());
    match step {
        Step::AskForFiles => format!("{why}; its shim is asked to write it anew"),
        Step::AskToEnd => format!("{why}; its shim is asked to end"),
        Step::Forget => why,
        Step::Leave if !facts.is_damaged => format!("{why}; the pod is left alone"),
        Step::Leave => {
            let pids = facts.left.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
            format!("{why}; its shim is gone and these processes may be its: end them ({pids}), then `{dir}` goes")
        }
    }
}

impl Lost {
    /// The pod in `dir`, of which nothing is known yet.
    pub(crate) fn new(dir: PodDir, found_at: Timestamp) -> Self {
        Self { dir, since: Instant::now(), found_at, message: String::new() }
    }

    /// Says something of it; whether that is new.
    pub(crate) fn say(&mut self, message: &str) -> bool {
        let is_new = self.message != message;
        message.clone_into(&mut self.message);
        is_new
    }

    /// It as others see it. It is not known to have ended, and it takes no connections.
    pub(crate) fn observed(&self, id: &PodId) -> ObservedPod {
        ObservedPod {
            id: id.clone(),
            owner: PodOwner::Unknown,
            origin: Origin::Own,
            labels: Default::default(),
            phase: PodPhase::Stopping { interrupted: false },
            restarts: 0,
            message: self.message.clone(),
            created_at: self.found_at,
            ended_at: None,
        }
    }
}

impl Inner {
    /// Waits a moment until what cannot be read was written anew, so that nothing is started in the place of what runs.
    pub(crate) fn mend_at_start(&self) {
        let since = Instant::now();
        self.mend();
        while self.table().has_unreadable() && since.elapsed() < AT_START {
            thread::sleep(READ_AGAIN);
            self.mend();
        }
    }

    /// Has shims write anew what cannot be read, and forgets what nobody can write any more.
    pub(crate) fn mend(&self) {
        let unreadable = self.table().unreadable();
        for (id, dir, since) in unreadable {
            self.refresh(&id);
            warn(&id, ask_shim(&dir, since > PATIENCE));
        }
        let lost = self.table().lost_ids();
        for id in lost {
            warn(&id, self.find_again(&id));
        }
    }

    /// A folder that holds a pod which is not known becomes known, goes, or says why it cannot.
    pub(crate) fn clear(&self, id: &PodId, dir: &PodDir) -> Result<()> {
        self.table().lose(id.clone(), Lost::new(dir.clone(), self.now()));
        self.find_again(id)?;
        let message = self.table().lost(id).map(|lost| lost.message.clone());
        message.map_or(Ok(()), |message| Err(Failure::transient(message)))
    }

    /// Examines a lost pod once more.
    pub(crate) fn find_again(&self, id: &PodId) -> Result<()> {
        let lost = self.table().lost(id).map(|lost| (lost.dir.clone(), lost.since.elapsed()));
        let Some((dir, since)) = lost else { return Ok(()) };
        if !dir.path().exists() {
            self.table().forget_lost(id);
            return Ok(());
        }
        let why = match Entry::read(&dir, &self.options.incarnation) {
            Ok(Some(entry)) => return self.found(id, entry),
            Ok(None) => None,
            Err(failure) => Some(failure),
        };
        let is_damaged = why.as_ref().is_none_or(|failure| format::is_damage(failure));
        let why = why.unwrap_or_else(|| Failure::stalled(format!("`{}` is gone", dir.record().display())));
        let wrong = || format!("cannot examine `{}`", dir.path().display());
        let left = process::marked(&format!("{id}:{}", start::folder_id(&dir).or_transient(wrong)?));
        let has_shim = files::is_locked(&dir.lock()).or_transient(wrong)?;
        let facts = Facts { why, is_damaged, has_shim, since, left };
        let step = judge(&facts);
        let message = message(&facts, &step, &dir);
        match step {
            Step::Forget => {
                tracing::warn!(pod = %id, why = message, "a pod of which nothing runs any more is forgotten");
                return self.forget_lost(id, &dir);
            }
            Step::AskForFiles | Step::AskToEnd => ask_shim(&dir, step == Step::AskToEnd)?,
            Step::Leave => {}
        }
        if self.table().say_of_lost(id, &message) {
            tracing::warn!(pod = %id, why = message, "the records of a pod cannot be read");
        }
        Ok(())
    }

    /// Its records can be read again.
    fn found(&self, id: &PodId, entry: Entry) -> Result<()> {
        let owner = entry.owner.clone();
        self.table().insert(id.clone(), entry);
        self.tell_services(id);
        self.announce(RuntimeChange::Pod(id.clone(), owner));
        self.keep_shim(id)
    }

    fn forget_lost(&self, id: &PodId, dir: &PodDir) -> Result<()> {
        self.throw_away(id, dir, self.now())?;
        self.table().forget_lost(id);
        self.announce(RuntimeChange::Everything);
        Ok(())
    }
}

/// Asks the shim of a pod, if it lives, to write the pod's files anew, or to end the pod.
fn ask_shim(dir: &PodDir, to_end: bool) -> Result<()> {
    let wrong = || format!("cannot ask the shim of `{}`", dir.path().display());
    if !files::is_locked(&dir.lock()).or_transient(wrong)? {
        return Ok(());
    }
    if to_end {
        files::write_whole(&dir.stop(), dir.path(), b"", Durability::Durable).or_transient(wrong)?;
    }
    wake::wake(dir).or_transient(wrong)
}

fn warn(id: &PodId, done: Result<()>) {
    if let Err(failure) = done {
        tracing::warn!(pod = %id, failure = failure.one_line(), "the records of a pod cannot be read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(is_damaged: bool, has_shim: bool, left: &[i32]) -> Facts {
        let why = Failure::stalled("cannot read `pod.json`");
        Facts { why, is_damaged, has_shim, since: Duration::ZERO, left: left.to_vec() }
    }

    #[test]
    fn a_shim_first_has_the_chance_to_write_anew() {
        assert_eq!(judge(&facts(true, true, &[7])), Step::AskForFiles);
        let later = Facts { since: PATIENCE * 2, ..facts(true, true, &[7]) };
        assert_eq!(judge(&later), Step::AskToEnd);
    }

    #[test]
    fn what_a_newer_program_wrote_is_neither_ended_nor_forgotten() {
        let later = |has_shim| Facts { since: PATIENCE * 2, ..facts(false, has_shim, &[]) };
        assert_eq!([judge(&later(true)), judge(&later(false))], [Step::Leave, Step::Leave]);
    }

    #[test]
    fn nothing_is_forgotten_of_which_something_may_run() {
        assert_eq!(judge(&facts(true, false, &[])), Step::Forget);
        let left = facts(true, false, &[7, 8]);
        assert_eq!(judge(&left), Step::Leave);
        let told = message(&left, &Step::Leave, &PodDir::new("/pods/ns/web-1-0"));
        assert!(told.contains("end them (7, 8)") && told.contains("`/pods/ns/web-1-0`"), "{told}");
    }
}
