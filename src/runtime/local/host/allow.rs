//! What a repository may use of the machine.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::{Failure, Result};
use crate::model::pod::{Container, Pod, SecurityContext};
use crate::runtime::local::pod::volume;

/// The image that is the machine itself.
pub(crate) const HOST_IMAGE: &str = "host";

/// What a repository may use beyond the daemon's own user and folders; nothing unless said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// The users, by id, that its pods may run as.
    pub users: BTreeSet<u32>,
    /// The folders that its pods may mount, with all below them.
    pub host_paths: Vec<PathBuf>,
    /// Whether its pods may run the machine's own programs by the image `host`.
    pub host_image: bool,
}

impl Allow {
    /// Refuses a pod that wants more. Host paths are judged when the volumes are made, because what counts is where
    /// they really lead.
    pub(crate) fn check(&self, pod: &Pod) -> Result<()> {
        let spec = &pod.template.spec;
        spec.init_containers
            .iter()
            .chain(&spec.containers)
            .try_for_each(|container| self.check_container(pod, container))
    }

    fn check_container(&self, pod: &Pod, container: &Container) -> Result<()> {
        if container.image == HOST_IMAGE && !self.host_image {
            let message =
                format!("container `{}`: image `host` is not allowed for `{}`", container.name, pod.repository);
            return Err(Failure::stalled(message).hint("the daemon's configuration says it by `allow.hostImage`"));
        }
        let SecurityContext { run_as_user, run_as_group } = volume::user_of_container(&pod.template.spec, container);
        let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let user = run_as_user.filter(|user| *user != own.0);
        let group = run_as_group.filter(|group| *group != own.1);
        for id in user.into_iter().chain(group) {
            if !self.users.contains(&id) {
                let message =
                    format!("container `{}`: user {id} is not allowed for `{}`", container.name, pod.repository);
                return Err(Failure::stalled(message).hint("the daemon's configuration says it by `allow.users`"));
            }
            if own.0 != 0 {
                let message = format!("container `{}`: only root can start processes of user {id}", container.name);
                return Err(Failure::stalled(message).hint("run the daemon as root, or leave `runAsUser` out"));
            }
        }
        Ok(())
    }
}
