//! Which versions get how much of the traffic of a service.

use std::collections::BTreeMap;

use crate::engine::deployment::observed::Observed;
use crate::engine::deployment::serve;
use crate::model::ids::ConfigKey;
use crate::model::pod::ObservedPod;
use crate::model::time::Timestamp;
use crate::model::wanted::{Backend, Wanted};

/// The weight of all versions of a deployment config together.
const WHOLE: u32 = 1000;

/// The versions that a service leads to among `pods`, with their weights; none if every ready pod is to get the same.
/// `sharing` are the deployment configs whose versions share the traffic.
pub fn backends(
    leads_to: impl Fn(&ObservedPod) -> bool,
    pods: &[ObservedPod],
    sharing: &BTreeMap<ConfigKey, Wanted>,
    now: Timestamp,
) -> Vec<Backend> {
    let selected: Vec<&ObservedPod> = pods.iter().filter(|pod| pod.lives() && leads_to(pod)).collect();
    let mut configs: BTreeMap<&ConfigKey, BTreeMap<u32, u32>> = BTreeMap::new();
    for (config, version) in selected.iter().filter_map(|pod| pod.version()) {
        *configs.entry(config).or_default().entry(version).or_default() += 1;
    }
    let mut shared = false;
    for (config, versions) in &mut configs {
        let Some(wanted) = sharing.get(config) else { continue };
        let observed = Observed::count(pods, config, wanted.min_ready_seconds, now);
        let shares = serve::decide(&wanted.at(now), &observed).shares;
        if !shares.is_empty() {
            *versions = shares;
            shared = true;
        }
    }
    if !shared {
        return Vec::new();
    }
    configs.into_iter().flat_map(|(config, versions)| weighed(config, &versions)).collect()
}

/// Each deployment config has the same weight, and its versions theirs in it.
fn weighed(config: &ConfigKey, parts: &BTreeMap<u32, u32>) -> Vec<Backend> {
    let total: u64 = parts.values().map(|part| u64::from(*part)).sum();
    let weight = |part: u32| u32::try_from((u64::from(WHOLE) * u64::from(part)).checked_div(total)?).ok();
    let backend = |(version, part): (&u32, &u32)| Backend {
        config: config.clone(),
        version: *version,
        weight: weight(*part).unwrap_or_default(),
    };
    parts.iter().map(backend).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{Namespace, PodName};
    use crate::model::pod::{Origin, PodId, PodOwner, PodPhase};
    use crate::model::selector::selects;
    use crate::model::wanted::{Portion, Target};

    fn config(name: &str) -> ConfigKey {
        ConfigKey { project: "p".into(), stage: "s".into(), name: name.into() }
    }

    fn pod(name: &str, version: u32, number: u32) -> ObservedPod {
        ObservedPod {
            id: PodId { namespace: Namespace::new("p-s"), name: PodName::new(format!("{name}-{version}-{number}")) },
            owner: PodOwner::Version { config: config(name), version, template: "t".into() },
            origin: Origin::Own,
            labels: BTreeMap::from([("tier".to_owned(), "front".to_owned())]).into(),
            phase: PodPhase::Ready { since: Timestamp(0) },
            restarts: 0,
            message: String::new(),
            created_at: Timestamp(0),
            ended_at: None,
        }
    }

    fn canary() -> Wanted {
        let target = |portion, share| Target { portion, ..Target::ALL.with_share(share) };
        let targets = BTreeMap::from([(1, target(Portion::Rest, 90)), (2, target(Portion::AtMost(1), 10))]);
        Wanted { targets, replicas: 3, ..Wanted::default() }
    }

    fn weights(pods: &[ObservedPod], sharing: &BTreeMap<ConfigKey, Wanted>) -> Vec<(String, u32, u32)> {
        let selector = BTreeMap::from([("tier".to_owned(), "front".to_owned())]);
        let backends = backends(|pod| selects(&selector, &pod.labels), pods, sharing, Timestamp(0));
        backends.into_iter().map(|it| (it.config.name, it.version, it.weight)).collect()
    }

    #[test]
    fn versions_get_their_shares_whatever_the_number_of_their_pods() {
        let pods = [pod("web", 1, 0), pod("web", 1, 1), pod("web", 2, 0)];
        let sharing = BTreeMap::from([(config("web"), canary())]);
        assert_eq!(weights(&pods, &sharing), [("web".into(), 1, 900), ("web".into(), 2, 100)]);
        assert!(weights(&pods, &BTreeMap::new()).is_empty(), "nobody has a share");
        assert!(backends(|_| false, &pods, &sharing, Timestamp(0)).is_empty(), "nothing is selected");
    }

    #[test]
    fn another_deployment_config_of_the_service_goes_on_as_before() {
        let pods = [pod("web", 1, 0), pod("web", 2, 0), pod("api", 4, 0), pod("api", 4, 1), pod("api", 5, 0)];
        let sharing = BTreeMap::from([(config("web"), canary())]);
        let expected = [("api", 4, 666), ("api", 5, 333), ("web", 1, 900), ("web", 2, 100)];
        assert_eq!(
            weights(&pods, &sharing),
            expected.map(|(name, version, weight)| (name.to_owned(), version, weight))
        );
    }

    #[test]
    fn a_version_without_a_share_answers_only_while_no_other_does() {
        let sharing = BTreeMap::from([(config("web"), canary())]);
        let weight = |version, weight| ("web".to_owned(), version, weight);
        let beside = weights(&[pod("web", 1, 0), pod("web", 3, 0)], &sharing);
        assert_eq!(beside, [weight(1, 900), weight(2, 100), weight(3, 0)]);
        let alone = weights(&[pod("web", 3, 0)], &sharing);
        assert!(alone.contains(&weight(3, 9)), "{alone:?}");
    }
}
