//! The list of the pods behind a service, which its proxy reads.

use std::collections::BTreeSet;

use super::PodEndpoint;
use super::pods::Pods;
use super::record::{self, Endpoint, ServiceDir};
use super::spec;
use crate::error::{Context, Result};
use crate::runtime::ServiceSpec;
use crate::runtime::local::host::files::Durability;

/// Writes the folders of a service's pods, if they changed. Where nobody has told which pods there are, those of the last
/// time stand.
pub(super) fn write(dir: &ServiceDir, spec: &ServiceSpec, pods: Option<&Pods>) -> Result<()> {
    let failed = || format!("cannot write down the pods of service `{}/{}`", spec.namespace, spec.name);
    let before = record::read_whole::<Vec<Endpoint>>(&dir.endpoints()).or_transient(failed)?;
    let now = match pods {
        Some(pods) => spec::select(spec, pods.candidates(spec)),
        None => before.clone().unwrap_or_default(),
    };
    if before.as_ref() == Some(&now) {
        return Ok(());
    }
    dir.write(&dir.endpoints(), &now, Durability::Plain).or_transient(failed)
}

/// Writes down that a pod is now behind a service, or no longer. The others stay as they are written; says whether they
/// could be read.
pub(super) fn exchange(
    dir: &ServiceDir,
    spec: &ServiceSpec,
    before_and_now: &[&PodEndpoint],
    now: Option<&PodEndpoint>,
) -> Result<bool> {
    let failed = || format!("cannot write down the pods of service `{}/{}`", spec.namespace, spec.name);
    let before = match record::read::<BTreeSet<Endpoint>>(&dir.endpoints()) {
        Err(error) if record::is_damage(&error) => return Ok(false),
        read => read.or_transient(failed)?,
    };
    let others =
        before.iter().flatten().filter(|it| before_and_now.iter().all(|pod| pod.dir.path() != it.dir())).cloned();
    let endpoints = others.chain(spec::select(spec, now)).collect();
    if before.as_ref() != Some(&endpoints) {
        dir.write(&dir.endpoints(), &endpoints, Durability::Plain).or_transient(failed)?;
    }
    Ok(true)
}
