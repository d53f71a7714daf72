//! Who writes into a person's repository. It stays theirs: whatever is written there, its owner can go on from.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::git::{existing, failed};
use crate::error::{Context as _, Failure, Result};

/// Whose a repository is, and who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ownership {
    /// The user and the group that its objects belong to.
    owner: (u32, u32),
    /// The mode of the folder that they are in.
    mode: u32,
    /// Whether the folder of its objects is its own, and belongs to whom the repository does.
    is_one: bool,
    /// Whether its group may write: `core.sharedRepository`.
    is_shared: bool,
    me: u32,
}

/// Who is to write, and how others may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    /// Somebody else than we are.
    pub(super) user: Option<(u32, u32)>,
    /// What is written may be read by whom the rest may be read by.
    pub(super) umask: u32,
}

impl Ownership {
    pub(super) fn of(repository: &git2::Repository) -> Result<Self> {
        let objects = repository.commondir().join("objects");
        let look = |path: &Path| fs::symlink_metadata(path).or_stalled(|| format!("cannot read `{}`", path.display()));
        let (folder, whole, common) = (look(&objects)?, look(repository.path())?, look(repository.commondir())?);
        let config = repository.config().and_then(|config| existing(config.get_string("core.sharedrepository")));
        let shared = config.map_err(failed(|| format!("cannot read the configuration in `{}`", objects.display())))?;
        Ok(Self {
            owner: (folder.uid(), folder.gid()),
            mode: folder.mode(),
            is_one: folder.is_dir() && whole.uid() == folder.uid() && common.uid() == folder.uid(),
            is_shared: shared.is_some_and(|shared| is_shared(&shared)),
            me: rustix::process::geteuid().as_raw(),
        })
    }

    /// Who writes; nobody, if the owner could not extend what we write.
    pub(super) fn writer(self, repository: &Path) -> Result<Writer> {
        let umask = !self.mode & 0o077;
        let (owner, _group) = self.owner;
        match self.me {
            // A link to somebody else's folder must not have us write there as them.
            0 if !self.is_one => {
                let path = repository.display();
                Err(Failure::stalled(format!("`{path}` and the objects in it do not belong to one user"))
                    .hint(format!("`chown -R OWNER {path}`; links and folders of others are not written to")))
            }
            me if me == owner => Ok(Writer { user: None, umask }),
            0 => Ok(Writer { user: Some(self.owner), umask }),
            _ if self.is_shared => Ok(Writer { user: None, umask }),
            me => {
                let path = repository.display();
                Err(Failure::stalled(format!(
                    "`{path}` belongs to user {owner}, who could not push any more once user {me} has written there"
                ))
                .hint(format!(
                    "run launchway as that user or as root, or share it: `git -C {path} config core.sharedRepository group`"
                )))
            }
        }
    }
}

/// Whether a value of `core.sharedRepository` lets the group write, as `git help config` has it.
fn is_shared(value: &str) -> bool {
    match value.to_ascii_lowercase().as_str() {
        "group" | "true" | "yes" | "on" | "1" | "all" | "world" | "everybody" | "2" => true,
        mode => mode.starts_with('0') && u32::from_str_radix(mode, 8).is_ok_and(|mode| mode & 0o020 != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_writes_leaves_what_the_owner_can_extend() {
        let case = |owner, mode, is_shared, me| Ownership { owner: (owner, 50), mode, is_one: true, is_shared, me };
        let as_owner = |umask| Some(Writer { user: Some((1000, 50)), umask });
        let myself = |umask| Some(Writer { user: None, umask });
        let cases = [
            (case(1000, 0o40755, false, 1000), myself(0o022)),
            (case(1000, 0o40700, false, 1000), myself(0o077)),
            (case(1000, 0o42775, true, 1000), myself(0o002)),
            (case(1000, 0o40755, false, 0), as_owner(0o022)),
            (case(1000, 0o42770, true, 0), as_owner(0o007)),
            (case(0, 0o40755, false, 0), myself(0o022)),
            (case(1000, 0o42775, true, 7), myself(0o002)),
            (case(1000, 0o40777, false, 7), None),
            (case(0, 0o40777, false, 7), None),
        ];
        for (ownership, expected) in cases {
            let writer = ownership.writer(Path::new("/srv/shop.git"));
            assert_eq!(writer.as_ref().ok(), expected.as_ref(), "{ownership:?}");
            let told = writer.err().map(|failure| failure.one_line()).unwrap_or_default();
            assert_eq!(told.contains("core.sharedRepository"), expected.is_none(), "{told}");
        }
    }

    #[test]
    fn root_writes_as_nobody_whose_folders_are_only_linked_to() {
        for (me, is_written) in [(0, false), (1000, true)] {
            let linked = Ownership { owner: (1000, 50), mode: 0o40755, is_one: false, is_shared: false, me };
            assert_eq!(linked.writer(Path::new("/srv/shop.git")).is_ok(), is_written, "as {me}");
        }
    }

    #[test]
    fn a_repository_is_shared_as_git_has_it() {
        let shared = ["group", "true", "1", "all", "world", "everybody", "2", "0660", "0664", "02770"];
        assert!(shared.iter().all(|value| is_shared(value)));
        assert!(["umask", "false", "0", "0640", "0600", "", "x"].iter().all(|value| !is_shared(value)));
    }
}
