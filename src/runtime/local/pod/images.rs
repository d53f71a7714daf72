//! Everything a pod needs of its images before it can run.

use super::{container, volume};
use crate::error::{Failure, Result};
use crate::model::pod::Pod;
use crate::runtime::local::host::allow::HOST_IMAGE;
use crate::runtime::local::launchable::images::Images;

/// Makes a pod's images runnable. Fails as `Stalled` also if one is, and lacks what a container runs.
pub(crate) fn prepare(pod: &Pod, images: &dyn Images) -> Result<()> {
    let spec = &pod.template.spec;
    let containers = spec.init_containers.iter().chain(&spec.containers);
    containers.filter(|container| container.image != HOST_IMAGE).try_for_each(|container| {
        if container.image.is_empty() {
            let message = format!("the template has no container `{}` with an image", container.name);
            return Err(Failure::stalled(message));
        }
        let user = volume::user_of_container(spec, container);
        images.prepare(&pod.repository, &container.image, user)?;
        let root = images.path(&pod.repository, &container.image)?;
        match root.and_then(|root| container::lacks_program(container, &root)) {
            Some(lacking) => Err(Failure::stalled(format!("container `{}` cannot start: {lacking}", container.name))),
            None => Ok(()),
        }
    })
}
