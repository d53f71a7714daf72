//! What files declare no longer stays as long as something runs with it.

use std::collections::BTreeSet;

use super::object::{place, put_object};
use crate::engine::records::{Records, Undecided};
use crate::model::ids::ConfigKey;
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::Change;
use crate::model::run::SequenceRun;
use crate::model::transaction::ObjectPlace;
use crate::plan::kept;

/// An object is declared no longer: it goes now, or with the last deployment config that needs it.
pub(super) fn withdraw(records: &mut Records, run: &SequenceRun, change: &Change) -> Result<(), Undecided> {
    let place = place(&run.service, change);
    let Some(object) = records.objects.get(&place)?.cloned() else { return Ok(()) };
    let own = run.changes().iter().filter(|change| change.key.kind == Kind::DeploymentConfig);
    let names: BTreeSet<&String> = own.map(|change| &change.key.name).chain(&change.needed_by).collect();
    let mut kept_by = BTreeSet::new();
    for name in names {
        let config = run.service.config(name);
        if !records.configs.get(&config)?.is_some_and(|state| kept::needs(state, &object)) {
            continue;
        }
        if let Some(state) = records.configs.get_mut(&config)? {
            state.keeps.insert(change.key.clone());
        }
        kept_by.insert(name.clone());
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

/// What deployment configs have kept goes, where the last of them needs it no longer.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine) fn release(records: &mut Records) -> Result<(), Undecided> {
    let keepers: Vec<(ConfigKey, BTreeSet<ObjectKey>)> =
        records.keepers().map(|state| (state.key.clone(), state.keeps.clone())).collect();
    for (config, keeps) in keepers {
        for key in keeps {
            release_one(records, &config, key)?;
        }
    }
    Ok(())
}

fn release_one(records: &mut Records, config: &ConfigKey, key: ObjectKey) -> Result<(), Undecided> {
    let (project, stage) = (config.project.clone(), config.stage.clone());
    let place = ObjectPlace { project, stage, key };
    let object = records.objects.get(&place)?.filter(|object| object.kept_by.contains(&config.name));
    let state = records.configs.get(config)?;
    if object.zip(state).is_some_and(|(object, state)| kept::needs(state, object)) {
        return Ok(());
    }
    let is_last = object.is_some_and(|object| object.kept_by.len() == 1);
    let is_its = object.is_some();
    if let Some(state) = records.configs.get_mut(config)? {
        state.keeps.remove(&place.key);
    }
    if is_last {
        records.objects.put(&place, None)?;
    } else if is_its && let Some(object) = records.objects.get_mut(&place)? {
        object.kept_by.remove(&config.name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::engine::fixtures::{attempted, delivery, serving, version};
    use crate::manifest::digest;
    use crate::model::ids::Destination;
    use crate::model::object::{Location, Object};
    use crate::model::outcome::Outcome;
    use crate::model::state::{Beside, ConfigState, ObjectState, Standing, Version};
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
            ("it serves", serves.clone(), "old key data"),
            ("another one is under way", attempts(None), "old new key data front"),
            ("another one has failed", attempts(Some(Outcome::FAIL)), "old key data front"),
            ("one stands beside it", ConfigState { beside: Some(stands), ..serves.clone() }, "old older key data"),
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
            let needed = objects.iter().filter(|(kind, name)| kept::needs(&state, &object(kind.clone(), name)));
            let needed: Vec<&str> = needed.map(|(_, name)| *name).collect();
            assert_eq!(needed.join(" "), expected, "{case}");
        }
    }
}
