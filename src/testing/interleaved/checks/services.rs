//! Where `Service` objects lead once nothing is under way any more.

use std::collections::BTreeMap;

use crate::error::Failure;
use crate::model::ids::Namespace;
use crate::model::object::Kind;
use crate::model::pod::ObservedPod;
use crate::model::selector::Labels;
use crate::model::state::ObjectState;
use crate::runtime::ServiceSpec;
use crate::testing::interleaved::checks::rest::At;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::people::now;

impl At<'_> {
    /// Each service that is recorded answers as it is recorded, and no other; which versions share its traffic are some that
    /// are there. What another life of the store has left serves on with the services that lead to it, whoever records them.
    pub(super) fn services_lead(&self) -> Held {
        let recorded = self.recorded_services()?;
        let pods = self.around.runtime.pods();
        let serves_on = |namespace: &Namespace| is_left_something(namespace, &pods);
        let there = self.around.runtime.services();
        for spec in &there {
            let record = recorded.get(&(spec.namespace.clone(), spec.name.clone()));
            let recorded = if serves_on(&spec.namespace) { Ok(()) } else { is_recorded(spec, record) };
            if let Err(what) = recorded.and_then(|()| shares(spec, &pods)) {
                return Ok(Err(Violation::new(Invariant::ServicesLead, what)));
            }
        }
        let is_missing = |(namespace, name): &&(Namespace, String)| {
            !there.iter().any(|it| (&it.namespace, &it.name) == (namespace, name))
        };
        Ok(match recorded.keys().find(is_missing) {
            Some((namespace, name)) => Err(Violation::new(
                Invariant::ServicesLead,
                format!("{namespace}/{name} is recorded and does not answer"),
            )),
            None => Ok(()),
        })
    }

    /// No service answers that no record names, also while others are still to lead elsewhere.
    pub(super) fn only_recorded_services_answer(&self) -> Held {
        let there = self.around.runtime.services();
        if there.is_empty() {
            return Ok(Ok(()));
        }
        let (recorded, pods) = (self.recorded_services()?, self.around.runtime.pods());
        let is_unknown = |it: &&ServiceSpec| !recorded.contains_key(&(it.namespace.clone(), it.name.clone()));
        let mut unknown = there.iter().filter(is_unknown);
        Ok(match unknown.find(|it| !is_left_something(&it.namespace, &pods)) {
            Some(ServiceSpec { namespace, name, .. }) => {
                let what = format!("{namespace}/{name} answers, and no record names it");
                Err(Violation::new(Invariant::ServicesLead, what))
            }
            None => Ok(()),
        })
    }

    /// What is recorded of services of repositories that are not down.
    fn recorded_services(&self) -> Result<BTreeMap<(Namespace, String), ObjectState>, Failure> {
        let down = self.down()?;
        let objects = now(self.store.objects(None, None, Some(&Kind::Service)))?.whole()?;
        let recorded = objects.into_iter().map(|it| it.value).filter(|it| !down.contains(&it.repository));
        let place = |it: &ObjectState| (it.destination.namespace.clone(), it.object.key.name.clone());
        Ok(recorded.map(|it| (place(&it), it)).collect())
    }
}

/// Whether pods serve in a namespace that another life of the store has left.
fn is_left_something(namespace: &Namespace, pods: &[ObservedPod]) -> bool {
    pods.iter().any(|pod| &pod.id.namespace == namespace && pod.is_stranger() && pod.lives())
}

/// Whether a service is as its record says.
fn is_recorded(spec: &ServiceSpec, record: Option<&ObjectState>) -> Result<(), String> {
    let name = format!("{}/{}", spec.namespace, spec.name);
    let record = record.ok_or_else(|| format!("{name} answers, and no record names it"))?;
    let content = record.object.content.value();
    let selector: Labels = serde_json::from_value(content["spec"]["selector"].clone()).unwrap_or_default();
    let port = content["spec"]["ports"][0]["port"].as_u64();
    let answers = spec.ports.first().map(|port| u64::from(port.port));
    if record.inherited.is_none() && (spec.selector != selector || answers != port) {
        return Err(format!(
            "{name} leads to {:?} on {answers:?}, and {selector:?} on {port:?} is recorded",
            spec.selector
        ));
    }
    Ok(())
}

/// Whether one that shares its traffic among versions has somebody who gets it.
fn shares(spec: &ServiceSpec, pods: &[ObservedPod]) -> Result<(), String> {
    let is_here = |pod: &ObservedPod| pod.id.namespace == spec.namespace && pod.lives();
    let leads_to = |pod: &&ObservedPod| is_here(pod) && spec.selects(pod.version(), &pod.labels);
    let gets_some = |pod: &ObservedPod| {
        let backend = spec.backends.iter().find(|it| pod.version() == Some((&it.config, it.version)));
        backend.is_some_and(|it| it.weight > 0)
    };
    let mut selected = pods.iter().filter(leads_to).peekable();
    if !spec.backends.is_empty() && selected.peek().is_some() && !selected.any(gets_some) {
        let ServiceSpec { namespace, name, backends, .. } = spec;
        return Err(format!("{namespace}/{name} shares its traffic among {backends:?}, none of which is there"));
    }
    Ok(())
}
