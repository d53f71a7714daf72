//! Where everything of the local runtime lies on the disk.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Failure, Result};
use crate::model::ids::{Namespace, PodName};
use crate::model::pod::PodId;
use crate::runtime::local::{API_SOCKET, LONGEST_SOCKET_PATH};

/// The longest file name that common file systems take.
const MAX_COMPONENT: usize = 200;

/// The runtime's own folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Root(PathBuf);

impl Root {
    /// The folder `path`; it need not exist yet.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// `pods/`: a folder a namespace, in it a folder a pod.
    pub(crate) fn pods(&self) -> PathBuf {
        self.0.join("pods")
    }

    /// `api/`: where deployers find the daemon's socket for them. It stays when that is made anew.
    pub(crate) fn api(&self) -> PathBuf {
        self.0.join("api")
    }

    /// The same. Fails if deployers could not reach the socket in it.
    pub(crate) fn api_in_reach(&self) -> Result<PathBuf> {
        let (folder, socket) = (self.api(), self.api().join(API_SOCKET));
        if socket.as_os_str().len() <= LONGEST_SOCKET_PATH {
            return Ok(folder);
        }
        let message = format!("no deployer could reach `{}`: no socket has so long a path", socket.display());
        Err(Failure::stalled(message).hint("choose a state folder with a shorter path"))
    }

    /// `changes/`: shims rename a file into it whenever their pod changed, so that one watch sees all pods.
    pub(crate) fn changes(&self) -> PathBuf {
        self.0.join("changes")
    }

    /// `trash/`: what is being deleted; nothing in it is a pod any more.
    pub(crate) fn trash(&self) -> PathBuf {
        self.0.join("trash")
    }

    /// The folder of a pod. Fails if its name cannot be one of a file.
    pub(crate) fn pod(&self, id: &PodId) -> Result<PodDir> {
        let namespace = component(id.namespace.as_str())?;
        Ok(PodDir::new(self.pods().join(namespace).join(component(id.name.as_str())?)))
    }

    /// All folders of pods.
    pub(crate) fn all_pods(&self) -> io::Result<Vec<(PodId, PodDir)>> {
        let mut found = Vec::new();
        for namespace in fs::read_dir(self.pods())? {
            let namespace = namespace?.path();
            for pod in fs::read_dir(&namespace)? {
                let path = pod?.path();
                let (Some(namespace), Some(name)) = (file_name(&namespace), file_name(&path)) else { continue };
                let id = PodId { namespace: Namespace::from(namespace), name: PodName::from(name) };
                found.push((id, PodDir::new(&path)));
            }
        }
        Ok(found)
    }

    /// The file that stands for a pod in `changes/`.
    pub(crate) fn change(&self, id: &PodId) -> PathBuf {
        self.changes().join(format!("{}~{}", id.namespace, id.name))
    }

    /// The pod that a file in `changes/` stands for.
    pub(crate) fn changed(file: &Path) -> Option<PodId> {
        let (namespace, name) = file.file_name()?.to_str()?.split_once('~')?;
        Some(PodId { namespace: Namespace::from(namespace), name: PodName::from(name) })
    }

    /// `volumes/`: a folder a namespace.
    pub(crate) fn all_claims(&self) -> PathBuf {
        self.0.join("volumes")
    }

    /// `volumes/<namespace>/`: a folder a claim, which outlives the pods.
    pub(crate) fn claims(&self, namespace: &Namespace) -> Result<PathBuf> {
        Ok(self.all_claims().join(component(namespace.as_str())?))
    }
}

/// The folder of one pod: all that its shim needs, and all that it tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodDir(Arc<Path>);

impl PodDir {
    /// The folder `path`.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self(path.as_ref().into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// `pod.json`: what was asked for.
    pub fn record(&self) -> PathBuf {
        self.0.join("pod.json")
    }

    /// `adopted.json`: which version of another life of the store took it over.
    pub(crate) fn adopted(&self) -> PathBuf {
        self.0.join("adopted.json")
    }

    /// `status.json`: what became of it; only its shim writes it.
    pub fn status(&self) -> PathBuf {
        self.0.join("status.json")
    }

    /// `ready`: exists exactly while the pod may get new connections, and says where it takes them.
    pub fn ready(&self) -> PathBuf {
        self.0.join("ready")
    }

    /// `connections`: shared-locked by a proxy while it has a request to this pod in flight.
    pub fn connections(&self) -> PathBuf {
        self.0.join("connections")
    }

    /// `shim.lock`: locked by the living shim.
    pub fn lock(&self) -> PathBuf {
        self.0.join("shim.lock")
    }

    /// `shim.log`: what the shim itself complains about.
    pub fn shim_log(&self) -> PathBuf {
        self.0.join("shim.log")
    }

    /// `stop`: exists once the pod was asked to end.
    pub fn stop(&self) -> PathBuf {
        self.0.join("stop")
    }

    /// `wake`: a pipe that wakes its shim.
    pub fn wake(&self) -> PathBuf {
        self.0.join("wake")
    }

    /// `entered`: exists once a command was run beside its containers' processes, which its shim did not start.
    pub fn entered(&self) -> PathBuf {
        self.0.join("entered")
    }

    /// `logs/<container>.cri`; older parts end in `.1`, `.2` and so on.
    pub fn log(&self, container: &str) -> PathBuf {
        self.0.join("logs").join(format!("{container}.cri"))
    }

    /// `logs/<container>.log`: the same as shims of an earlier version have written it, without times.
    pub(crate) fn plain_log(&self, container: &str) -> PathBuf {
        self.0.join("logs").join(format!("{container}.log"))
    }

    /// `home/`: the home folder of its processes.
    pub fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// `home/.launchway-result.json`: where its processes write how it went, if they are to.
    pub(crate) fn own_result(&self) -> PathBuf {
        self.home().join(".launchway-result.json")
    }

    /// `result.json`: what they have written there, as its shim has read it.
    pub(crate) fn result(&self) -> PathBuf {
        self.0.join("result.json")
    }

    /// `scratch/`: an empty folder, on which things are put together before they are mounted elsewhere.
    pub fn scratch(&self) -> PathBuf {
        self.0.join("scratch")
    }

    /// `volumes/<volume>`: what its volumes hold.
    pub fn volume(&self, name: &str) -> PathBuf {
        self.0.join("volumes").join(name)
    }
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// `name`, if it can be the name of one file.
pub(crate) fn component(name: &str) -> Result<&str> {
    let fits = !name.is_empty() && name.len() <= MAX_COMPONENT && !name.starts_with('.');
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if fits && plain { Ok(name) } else { Err(Failure::stalled(format!("`{name}` cannot be a name on this machine"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leaves_its_folder_is_refused() {
        for bad in ["", ".", "..", "../x", "a/b", "a~b", "a\0b", &"x".repeat(300)] {
            assert!(component(bad).is_err(), "{bad:?}");
        }
        assert!(component("shop-dev.web_1").is_ok());
    }

    #[test]
    fn a_change_names_its_pod() {
        let id = PodId { namespace: "shop-dev".into(), name: "web-1-abc".into() };
        assert_eq!(Root::changed(&Root::new("/r").change(&id)), Some(id));
        assert_eq!(Root::changed(Path::new("/r/changes/none")), None);
    }
}
