//! Which services of a stage have still to pass its delivery sequence although nothing differs.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ids::{Digest, ServiceName};
use crate::model::project::{Procedure, StageContent};
use crate::model::shipyard::{DEPLOYMENT_TASK, Sequence};
use crate::model::slot::Delivered;
use crate::plan::build::{Applied, content_of};
use crate::plan::under_way::UnderWay;
use crate::plan::{passed_procedure, procedure, same_procedure};

/// How a sequence delivers that only deploys; none, if it does more. What was delivered so has passed with it.
pub fn deploys(sequence: &Sequence) -> Option<Procedure> {
    let only_deploys = sequence.tasks.iter().all(|task| task.name == DEPLOYMENT_TASK);
    only_deploys.then(|| Procedure { sequence: sequence.clone(), ..Procedure::default() })
}

/// What a stage is asked about its services, before it is known which of their contents passed.
#[derive(Debug)]
pub struct Asked<'a> {
    sequence: &'a Sequence,
    only_deploys: bool,
    /// What did not end since it is declared, with what it has to pass.
    services: BTreeMap<ServiceName, (Digest, Digest)>,
    never_deployed: BTreeMap<ServiceName, String>,
    withdrawn: BTreeSet<ServiceName>,
}

impl<'a> Asked<'a> {
    /// What is to be known of a stage that is delivered by `sequence`. `delivered` is what was delivered there last, without
    /// what was deployed as [`deploys`] says. Where a sequence only deploys, what is deployed has passed, unless the
    /// sequence before did more and did not end well.
    pub fn of(
        content: &StageContent,
        sequence: &'a Sequence,
        under_way: &BTreeMap<ServiceName, UnderWay>,
        mut delivered: BTreeMap<ServiceName, Delivered>,
    ) -> Self {
        let deploys = deploys(sequence);
        let otherwise = |service: &ServiceName, deploys: &Procedure| {
            let under_way = under_way.get(service).filter(|it| !same_procedure(&it.procedure, deploys));
            let last = delivered.get(service).map(|last| &last.content);
            under_way
                .map(|it| &it.content)
                .into_iter()
                .chain(last)
                .any(|brought| *brought == content_of(content, service))
        };
        let is_asked = |service: &&ServiceName| deploys.as_ref().is_none_or(|deploys| otherwise(service, deploys));
        let services: Vec<&ServiceName> = content.objects.services().filter(is_asked).collect();
        let only_deploys = deploys.is_some();
        let (never_deployed, withdrawn) = Default::default();
        let mut asked = Self { sequence, only_deploys, services: BTreeMap::new(), never_deployed, withdrawn };
        // All services that no task names are delivered alike.
        let named: BTreeSet<&ServiceName> = content.tasks.values().flatten().flat_map(|task| &task.services).collect();
        let mut procedures = BTreeMap::new();
        for service in services {
            let (tried, passes) = procedures.entry(named.get(service)).or_insert_with(|| {
                let tried = content.procedure(sequence, service);
                (procedure(&tried), passed_procedure(&tried))
            });
            let declared = content_of(content, service);
            let last = delivered.get(service).filter(|last| last.content == declared);
            // What is tried in another way now will have been delivered last.
            let stays_last = under_way
                .get(service)
                .is_none_or(|coming| coming.content != declared || procedure(&coming.procedure) == *tried);
            match last.filter(|last| stays_last && last.procedure == *tried) {
                Some(ended) if ended.deployed => {}
                Some(_) => drop(asked.never_deployed.insert(service.clone(), asked.why_not(content, service))),
                None => drop(asked.services.insert(service.clone(), (declared, passes.clone()))),
            }
            if last.is_some() {
                delivered.remove(service);
            }
        }
        let withdrawn = delivered.into_iter().filter(|(_, last)| !last.deployed);
        asked.withdrawn.extend(withdrawn.map(|(service, _)| service));
        asked
    }

    fn why_not(&self, content: &StageContent, service: &ServiceName) -> String {
        let hint = format!("`launchway trigger delivery {service} -s {}` runs it again", content.name);
        format!("`{}` ended before its deployment; {hint}", self.sequence.name)
    }

    /// The contents of which it has to be known by which procedure they passed, if they did.
    pub fn contents(&self) -> impl Iterator<Item = (&ServiceName, &Digest)> {
        self.services.iter().map(|(service, (content, _))| (service, content))
    }

    /// Notes which services have not passed and why that is news, and which have content that was not delivered last and
    /// passed before. `passed` says by which procedure, and `only_deployed` what was delivered last by a sequence that only
    /// deploys: where this one does no more, there is nothing that it has still to pass.
    pub fn judge(
        self,
        passed: &BTreeMap<ServiceName, Digest>,
        only_deployed: &BTreeSet<ServiceName>,
        seen: &mut Applied,
    ) {
        for (service, (content, passes)) in self.services {
            if self.only_deploys && only_deployed.contains(&service) {
                continue;
            }
            // What is tried in another way now may have passed until then.
            let is_tried_otherwise = |it: &UnderWay| it.content == content && passed_procedure(&it.procedure) != passes;
            let is_certain = !seen.under_way.get(&service).is_some_and(is_tried_otherwise);
            let news = match passed.get(&service) {
                Some(by) if is_certain && (*by == passes || self.only_deploys) => {
                    seen.passed_before.insert(service, content);
                    continue;
                }
                Some(by) if *by != passes => "has changed",
                Some(_) | None => "has not passed with this",
            };
            seen.not_passed.insert(service, format!("`{}` {news}", self.sequence.name));
        }
        seen.never_deployed.extend(self.never_deployed);
        seen.withdrawn.extend(self.withdrawn);
    }
}

#[cfg(test)]
mod tests;
