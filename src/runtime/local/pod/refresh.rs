//! Reading again what shims say of their pods.

use std::fs;
use std::time::Duration;

use super::paths::PodDir;
use super::status::PodStatus;
use crate::error::Result;
use crate::model::pod::PodId;
use crate::runtime::RuntimeChange;
use crate::runtime::local::host::format;
use crate::runtime::local::runtime::Inner;

/// What was written so long ago should have been announced.
const OVERLOOKED: Duration = Duration::from_secs(1);

impl Inner {
    /// Reads again what has become of a pod; says whether that is new.
    pub(crate) fn refresh(&self, id: &PodId) -> bool {
        let known = self.table().get(id).map(|entry| (entry.dir.clone(), entry.status().is_some()));
        let Some((dir, has_status)) = known else {
            return self.refresh_lost(id);
        };
        if !dir.path().exists() {
            return self.forget_deleted(id);
        }
        let status = match read(&dir, has_status) {
            Ok(status) => status,
            Err(failure) => {
                tracing::warn!(pod = %id, failure = failure.one_line(), "status not readable");
                return false;
            }
        };
        let Some(status) = status else {
            self.table().cannot_read(id, format!("`{}` is damaged or gone", dir.status().display()));
            return false;
        };
        let Some(change) = self.table().set_status(id, status) else { return false };
        self.announce(RuntimeChange::Pod(id.clone(), change.owner));
        if change.ended {
            self.tell_services(id);
        }
        true
    }

    /// A lost pod may be found now: its shim has written something.
    fn refresh_lost(&self, id: &PodId) -> bool {
        if let Err(failure) = self.find_again(id) {
            tracing::warn!(pod = %id, failure = failure.one_line(), "the records of a pod cannot be read");
        }
        false
    }

    /// Reads each pod again, and announces those that changed.
    pub(crate) fn refresh_each(&self) {
        let ids = self.table().ids();
        for id in ids {
            self.refresh(&id);
        }
    }

    /// Reads all pods again, and announces that anything may have changed.
    pub(crate) fn refresh_all(&self) {
        self.refresh_each();
        self.announce(RuntimeChange::Everything);
    }

    /// The safety net: reads each pod again, and counts those that have changed without an announcement.
    pub(crate) fn resync(&self) {
        let dirs = self.table().dirs();
        let is_old = |dir: &PodDir| {
            let written = fs::metadata(dir.status()).and_then(|status| status.modified()).ok();
            written.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > OVERLOOKED)
        };
        let is_overlooked = |(id, dir): &&(PodId, PodDir)| {
            let is_old = is_old(dir);
            self.refresh(id) && is_old
        };
        let overlooked = dirs.iter().filter(is_overlooked).count();
        if overlooked > 0 {
            self.announce(RuntimeChange::Overlooked(overlooked));
        }
    }

    /// A shim is gone: its pod ended, or another shim has to find out what is left.
    pub(crate) fn shim_ended(&self, id: &PodId) {
        self.table().change(id, |entry| entry.watched = false);
        self.refresh(id);
    }

    /// Somebody deleted the folder of a pod: its shim notices and ends it, and then it is forgotten.
    fn forget_deleted(&self, id: &PodId) -> bool {
        let mut table = self.table();
        let lives =
            |entry: &super::table::Entry| entry.status().and_then(|status| status.shim).is_some_and(|it| it.lives());
        if table.get(id).is_none_or(|entry| entry.leaves || lives(entry)) {
            return false;
        }
        table.remove(id);
        drop(table);
        tracing::warn!(pod = %id, "a pod is forgotten, because its folder was deleted");
        self.tell_services(id);
        self.announce(RuntimeChange::Everything);
        true
    }
}

/// What a shim wrote, if anything yet; `None` if that is damaged or gone. What was there once does not vanish by itself.
fn read(dir: &PodDir, had_status: bool) -> Result<Option<Option<PodStatus>>> {
    match PodStatus::read(dir) {
        Ok(None) if had_status => Ok(None),
        Err(failure) if format::is_damage(&failure) => Ok(None),
        read => read.map(Some),
    }
}
