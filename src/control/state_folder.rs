//! The folder in which a daemon keeps everything, one daemon at a time.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{Context, Failure, Result};

/// Where a daemon's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFolder {
    root: PathBuf,
    /// Whether pods of other users pass through it, which never end because their daemon does.
    is_passed: bool,
}

/// The proof that this process is the folder's only daemon; given back when dropped.
#[derive(Debug)]
pub struct Ownership {
    #[cfg_attr(not(test), expect(dead_code, reason = "held, and given back with its end"))]
    lock: File,
}

impl StateFolder {
    /// The folder at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), is_passed: false }
    }

    /// The same, where pods may run as other users: they get through to the folders that they are told of.
    #[must_use]
    pub fn for_pods_of_others(self, is_passed: bool) -> Self {
        Self { is_passed, ..self }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The store.
    pub fn store(&self) -> PathBuf {
        self.root.join("store.db")
    }

    /// The objects of a repository.
    pub fn mirror(&self, repository: &str) -> PathBuf {
        self.mirrors().join(format!("{repository}.git"))
    }

    fn mirrors(&self) -> PathBuf {
        self.root.join("mirrors")
    }

    /// What the local runtime keeps.
    pub fn local_runtime(&self) -> PathBuf {
        self.root.join("local")
    }

    /// Makes the folder, for its owner's eyes only, and takes it. One that others could read is closed to them.
    ///
    /// # Errors
    /// If it cannot be made, written or closed, or another daemon has it; `other` says which, if that is known.
    pub fn take(&self, other: impl FnOnce() -> Option<String>) -> Result<Ownership> {
        let unusable = || format!("cannot use state folder `{}`", self.root.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root).or_stalled(unusable)?;
        let path = self.root.join("daemon.lock");
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
        let lock = options.open(&path).map_err(|error| {
            Failure::stalled(unusable()).because(error).hint("choose another with --state, or make it writable")
        })?;
        // A record lock, because that is the process's own. What `flock` takes, every child has too until it runs its own
        // program: a daemon that is killed while it starts a pod would keep the next one out.
        rustix::fs::fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            let which = other().unwrap_or_else(|| format!("it is just starting or ending ({error})"));
            let message = format!("another daemon uses state folder `{}`: {which}", self.root.display());
            Failure::stalled(message).hint("stop it, or choose another folder with --state")
        })?;
        self.close()?;
        for folder in [self.mirrors(), self.local_runtime()] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).or_stalled(unusable)?;
        }
        let local = Permissions::from_mode(self.mode_for_pods());
        fs::set_permissions(self.local_runtime(), local).or_stalled(unusable)?;
        Ok(Ownership { lock })
    }

    /// Others were let through to the sockets of the daemon before, or could do more by a mistake: what it holds may be known
    /// then, which is said. Refusing to start would close nothing. A folder that is somebody else's stays as they made it, if
    /// they kept it to themselves.
    fn close(&self) -> Result<()> {
        let unusable = || format!("cannot use state folder `{}`", self.root.display());
        let folder = fs::metadata(&self.root).or_stalled(unusable)?;
        let is_exposed = folder.permissions().mode() & 0o066 != 0;
        let user = rustix::process::geteuid();
        // Its owner could have root run anything.
        if user.is_root() && folder.uid() != 0 {
            let owner = folder.uid();
            let message = format!("state folder `{}` is that of user {owner}, and this is root", self.root.display());
            return Err(
                Failure::stalled(message).hint("run as that user, choose another with --state, or `chown -R root` it")
            );
        }
        match fs::set_permissions(&self.root, Permissions::from_mode(self.mode_for_pods())) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_exposed => {
                let message =
                    format!("state folder `{}` is another user's, and others can read it", self.root.display());
                return Err(Failure::stalled(message).hint("choose another with --state, or let its owner close it"));
            }
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error).or_stalled(unusable),
            _ => {}
        }
        if is_exposed {
            let folder = self.root.display();
            tracing::warn!(%folder, "others could read the state folder until now; if they are not trusted, change what it held");
        }
        self.close_entries().or_stalled(unusable)
    }

    /// Whoever is let through lists nothing: what may be read is known by its name.
    fn mode_for_pods(&self) -> u32 {
        if self.is_passed { 0o711 } else { 0o700 }
    }

    /// Lets other users through to the sockets here, which say themselves who may open them, and to nothing else.
    ///
    /// # Errors
    /// If permissions cannot be changed.
    pub fn let_through(&self) -> Result<()> {
        self.close_entries()
            .and_then(|()| fs::set_permissions(&self.root, Permissions::from_mode(0o711)))
            .or_stalled(|| format!("cannot set the permissions in `{}`", self.root.display()))
    }

    /// Whatever is here is its owner's alone, whatever the umask was when it was made.
    fn close_entries(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if self.is_passed && path == self.local_runtime() {
                continue;
            }
            match close(&path) {
                // What is made under another name may have got its own meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    tracing::warn!(file = %path.display(), "this file in the state folder is another user's");
                }
                closed => closed?,
            }
        }
        Ok(())
    }
}

fn close(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let says_itself = metadata.file_type().is_socket() || metadata.is_symlink();
    if says_itself || mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !0o077))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn others_get_through_to_sockets_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path().join("state"));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let store = state.store();
        for _life in 0..2 {
            let _owned = state.take(|| None).expect("the folder is free");
            assert_eq!(mode(state.root()), 0o700);
            fs::write(&store, "secrets").expect("written");
            fs::set_permissions(&store, Permissions::from_mode(0o644)).expect("as a lax umask makes it");
            fs::set_permissions(state.local_runtime(), Permissions::from_mode(0o755)).expect("the same");
            state.let_through().expect("opened");
            assert_eq!((mode(state.root()), mode(&store), mode(&state.local_runtime())), (0o711, 0o600, 0o700));
        }
    }

    #[test]
    fn a_folder_that_others_could_read_is_closed_with_what_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path().join("state"));
        fs::create_dir_all(state.local_runtime()).expect("a folder");
        fs::write(state.store(), "secrets").expect("written");
        let open = [(state.root().to_owned(), 0o777), (state.store(), 0o666), (state.local_runtime(), 0o755)];
        for (path, mode) in &open {
            fs::set_permissions(path, Permissions::from_mode(*mode)).expect("open to all");
        }
        let _owned = state.take(|| None).expect("the folder is free");
        let modes = open.map(|(path, _)| fs::metadata(path).expect("there").permissions().mode() & 0o777);
        assert_eq!(modes, [0o700, 0o600, 0o700]);
    }

    #[test]
    fn pods_of_others_get_through_to_their_folders_also_while_a_daemon_starts() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path().join("state")).for_pods_of_others(true);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        for _life in 0..2 {
            let _owned = state.take(|| None).expect("the folder is free");
            assert_eq!((mode(state.root()), mode(&state.local_runtime())), (0o711, 0o711));
            state.let_through().expect("opened");
            assert_eq!((mode(&state.local_runtime()), mode(&state.mirrors())), (0o711, 0o700));
        }
    }

    #[test]
    fn a_child_of_a_daemon_that_ended_keeps_nobody_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateFolder::new(folder.path().join("state"));
        let nobody = || None;
        let first = state.take(nobody).expect("the folder is free");
        let inherited = first.lock.try_clone().expect("as a child has it that was just forked");
        let mut child = Command::new("sleep").arg("1000").stdin(inherited).spawn().expect("a child");
        drop(first);
        let next = state.take(nobody);
        child.kill().and_then(|()| child.wait()).expect("the child's end");
        next.expect("the folder is free again");
    }
}
