//! A daemon that hears of pushes by webhooks, with what it needs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::caller::SECRET;
use super::git_server::GitServer;
use super::host::Host;
use crate::support::daemon::{Daemon, wait_until};
use crate::support::{git, version};

/// All of it; the daemon and its pods end first.
pub(crate) struct Place {
    pub(crate) daemon: Daemon,
    pub(crate) host: Host,
    /// The work tree.
    pub(crate) work: PathBuf,
    _server: GitServer,
    _folder: tempfile::TempDir,
}

impl Place {
    /// The first version runs.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let owner = folder.path().join("acme");
        fs::create_dir(&owner).unwrap();
        git::bare(&owner);
        git::run(&owner, &["clone", "--quiet", "origin.git", "work"]);
        let work = owner.join("work");
        version::commit(&work, 0);
        git::run(&work, &["push", "--quiet", "origin", "HEAD:main"]);
        let (server, host) = (GitServer::start(folder.path()), Host::start());
        let [secret, token] = ["secret", "token"].map(|name| folder.path().join(name));
        private(&secret, SECRET);
        private(&token, "d8a1c2e3f4051627384950617283940516273849");
        let repository = format!(
            "url: '{}', webhook: {{secretFiles: [{}]}}, forge: {{kind: gitea, url: 'http://{}'}}, \
             credentials: {{tokenFile: {}}}, previews: false",
            server.url("acme/origin.git"),
            secret.display(),
            host.address,
            token.display()
        );
        let daemon = Daemon::start_with(folder.path(), &repository);
        wait_until("the first version runs", || version::started(&work, 0));
        Self { daemon, host, work, _server: server, _folder: folder }
    }

    /// The commit that the work tree has.
    pub(crate) fn head(&self) -> String {
        let output = git::git(&self.work).args(["rev-parse", "HEAD"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

fn private(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
