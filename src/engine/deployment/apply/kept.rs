//! What files declare no longer stays as long as something runs with it.

use std::collections::{BTreeMap, BTreeSet};

use super::object::{place, put_object};
use crate::engine::records::{Records, Undecided};
use crate::manifest::referenced;
use crate::model::ids::ConfigKey;
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::run::SequenceRun;
use crate::model::state::{Kept, ObjectState, Version};
use crate::model::transaction::ObjectPlace;
use crate::plan::kept;

/// An object is declared no longer: it goes now, or with the last deployment config that needs it.
pub(super) fn withdraw(records: &mut Records, run: &SequenceRun, change: &Change) -> Result<(), Undecided> {
    let place = place(&run.service, change);
    let Some(object) = records.objects.get(&place)?.cloned() else { return Ok(()) };
    let own = run.changes().iter().filter(|change| change.key.kind == Kind::DeploymentConfig);
    let own: BTreeMap<&str, Decision> = own.map(|change| (&*change.key.name, change.decision)).collect();
    let names: BTreeSet<&str> = own.keys().copied().chain(change.needed_by.iter().map(String::as_str)).collect();
    let mut kept_by = BTreeSet::new();
    for name in names {
        let config = run.service.config(name);
        let Some(state) = records.configs.get(&config)? else { continue };
        let since = state.serving.as_ref().map_or(0, |serving| serving.number);
        // What is delivered with another service may come only now.
        let comes = own.get(name).map_or(state.declared_on != run.commit, |decision| *decision == Decision::Wait);
        let is_replaced = change.key.kind != Kind::Service || comes || kept::is_to_be_replaced(state);
        if is_replaced && kept::needs(state, &object, since) {
            keep(records, &config, Kept { key: change.key.clone(), since })?;
            kept_by.insert(name.to_owned());
        }
    }
    if kept_by.is_empty() {
        return put_object(records, run, change, None);
    }
    if let Some(object) = records.objects.get_mut(&place)? {
        object.planned_at = run.planned_at.or(object.planned_at);
        object.kept_by = kept_by;
    }
    Ok(())
}

fn keep(records: &mut Records, config: &ConfigKey, kept: Kept) -> Result<(), Undecided> {
    if let Some(state) = records.configs.get_mut(config)? {
        state.keeps.retain(|known| known.key != kept.key);
        state.keeps.push(kept);
    }
    Ok(())
}

/// What deployment configs have kept goes, where the last of them needs it no longer; what one begins to deploy keeps what it reads
/// of that as well.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn settle(records: &mut Records) -> Result<(), Undecided> {
    let begun: Vec<(ConfigKey, Version)> =
        records.begun().map(|(key, version)| (key.clone(), version.clone())).collect();
    for (config, version) in begun {
        for key in referenced(&version.object) {
            join(records, &config, key)?;
        }
    }
    let keepers: Vec<(ConfigKey, Vec<Kept>)> =
        records.keepers().map(|state| (state.key.clone(), state.keeps.clone())).collect();
    for (config, keeps) in keepers {
        for kept in keeps {
            release(records, &config, kept)?;
        }
    }
    Ok(())
}

fn place_in_stage_of(config: &ConfigKey, key: ObjectKey) -> ObjectPlace {
    ObjectPlace { project: config.project.clone(), stage: config.stage.clone(), key }
}

/// A deployment config reads an object from now on, which is only kept.
fn join(records: &mut Records, config: &ConfigKey, key: ObjectKey) -> Result<(), Undecided> {
    let place = place_in_stage_of(config, key);
    if !records.objects.get(&place)?.is_some_and(ObjectState::is_kept) {
        return Ok(());
    }
    if let Some(object) = records.objects.get_mut(&place)? {
        object.kept_by.insert(config.name.clone());
    }
    keep(records, config, Kept { key: place.key, since: 0 })
}

fn release(records: &mut Records, config: &ConfigKey, kept: Kept) -> Result<(), Undecided> {
    let place = place_in_stage_of(config, kept.key);
    let object = records.objects.get(&place)?.filter(|object| object.kept_by.contains(&config.name));
    let state = records.configs.get(config)?;
    if object.zip(state).is_some_and(|(object, state)| kept::needs(state, object, kept.since)) {
        return Ok(());
    }
    let keepers = object.map_or(0, |object| object.kept_by.len());
    if let Some(state) = records.configs.get_mut(config)? {
        state.keeps.retain(|known| known.key != place.key);
    }
    match keepers {
        0 => {}
        1 => records.objects.put(&place, None)?,
        _ => {
            if let Some(object) = records.objects.get_mut(&place)? {
                object.kept_by.remove(&config.name);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::fixtures::{attempted, delivery, serving, version};
    use crate::manifest::digest;
    use crate::model::ids::Destination;
    use crate::model::object::{Location, Object};
    use crate::model::outcome::Outcome;
    use crate::model::state::{Beside, ConfigState, Standing};
    use crate::model::time::Timestamp;

    fn object(kind: Kind, name: &str) -> ObjectState {
        let content = json!({"spec": {"selector": {"app": "web"}}});
        let object = Object {
            key: ObjectKey { kind, name: name.into() },
            service: "web".into(),
            location: Location::default(),
            digest: digest::of(&content),
            content: content.into(),
            autoscaled_at: None,
        };
        ObjectState {
            project: "shop".into(),
            stage: "dev".into(),
            destination: Destination::local("shop-dev".into()),
            repository: "repo".into(),
            object: object.into(),
            planned_at: None,
            inherited: None,
            tagged: BTreeMap::new(),
            kept_by: BTreeSet::new(),
        }
    }

    /// A version whose pods read the ConfigMap `map` and have the label that the `Service` of these tests selects by.
    fn reading(map: &str, number: u32) -> Version {
        let mut version = version(number, "a");
        let mut content = version.object.content.value();
        content["spec"]["template"] = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "a", "envFrom": [{"configMapRef": {"name": map}}]}],
                "volumes": [{"secret": {"secretName": "key"}}, {"persistentVolumeClaim": {"claimName": "data"}}],
            },
        });
        let mut object = Object::clone(&version.object);
        digest::exchange(&mut object, content);
        version.object = object.into();
        version
    }

    #[test]
    fn what_runs_needs_what_it_reads_and_what_leads_to_it_until_something_has_taken_its_place() {
        let by = delivery("s1", "b");
        let serves = ConfigState { serving: Some(reading("old", 1)), ..serving(1, "a") };
        let attempts = |outcome| {
            let mut state = attempted(serves.clone(), "b", &by, outcome);
            if let Some(attempt) = &mut state.attempted {
                attempt.version = reading("new", 2);
            }
            state
        };
        let stands = Beside { version: reading("older", 3), standing: Standing::Spare(Timestamp(1)) };
        let states = [
            ("it serves", serves.clone(), "old key data front"),
            ("another one is under way", attempts(None), "old new key data front"),
            ("another one has failed", attempts(Some(Outcome::FAIL)), "old key data front"),
            (
                "one stands beside it",
                ConfigState { beside: Some(stands), ..serves.clone() },
                "old older key data front",
            ),
            ("another one serves", ConfigState { serving: Some(reading("old", 2)), ..serves.clone() }, "old key data"),
            ("it goes", ConfigState { removed: true, ..attempts(None) }, ""),
            ("nothing serves", ConfigState { serving: None, ..serves }, ""),
        ];
        let objects = [
            (Kind::ConfigMap, "old"),
            (Kind::ConfigMap, "new"),
            (Kind::ConfigMap, "older"),
            (Kind::Secret, "key"),
            (Kind::PersistentVolumeClaim, "data"),
            (Kind::Service, "front"),
            (Kind::ImageStream, "old"),
            (Kind::Other("Job".into()), "old"),
        ];
        for (case, state, expected) in states {
            let needed = objects.iter().filter(|(kind, name)| kept::needs(&state, &object(kind.clone(), name), 1));
            let needed: Vec<&str> = needed.map(|(_, name)| *name).collect();
            assert_eq!(needed.join(" "), expected, "{case}");
        }
    }
}
