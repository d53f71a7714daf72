//! What files declare no longer stays as long as something runs with it, and what they declare otherwise stays what it was for it.

use std::collections::{BTreeMap, BTreeSet};

use super::object::{place, put_object};
use crate::engine::records::{Needs, Records, Undecided};
use crate::manifest::referenced;
use crate::model::ids::ConfigKey;
use crate::model::object::{Kind, ObjectKey};
use crate::model::plan::{Change, Decision};
use crate::model::run::{Run, SequenceRun};
use crate::model::state::{ConfigState, Earlier, Kept, ObjectState, Version};
use crate::model::transaction::ObjectPlace;
use crate::plan::kept;

/// An object is declared no longer: it goes now, or with the last deployment config that needs it.
pub(super) fn withdraw(records: &mut Records, run: &SequenceRun, change: &Change) -> Result<(), Undecided> {
    let place = place(&run.service, change);
    let Some(object) = records.objects.get(&place)?.cloned() else { return Ok(()) };
    let own = brought(run);
    let mut kept_by = BTreeSet::new();
    for name in users(&own, change) {
        let config = run.service.config(name);
        let Some(state) = records.configs.get(&config)? else { continue };
        let since = version_that_serves(state);
        // What is delivered with another service may come only now.
        let comes = own.get(name).map_or(state.declared_on != run.commit, |it| it.decision == Decision::Wait);
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

/// What an object was for each version that goes on with it although it is declared otherwise now.
pub(super) fn outlived(records: &mut Records, run: &SequenceRun, change: &Change) -> Result<Vec<Earlier>, Undecided> {
    let Some(object) = records.objects.get(&place(&run.service, change))?.cloned() else { return Ok(Vec::new()) };
    let own = brought(run);
    let before = object.earlier.iter().map(|earlier| &*earlier.config).chain(object.kept_by.iter().map(String::as_str));
    let names: BTreeSet<&str> = users(&own, change).into_iter().chain(before).collect();
    let mut earlier = Vec::new();
    for name in names {
        let config = run.service.config(name);
        let Some(state) = records.configs.get(&config)? else { continue };
        let of_version = |version: &Version| Earlier {
            config: name.to_owned(),
            version: version.number,
            by: run.id.clone(),
            went_back: false,
            object: object.of_version(name, version.number).clone(),
        };
        let is_other = |it: &Earlier| change.object.as_ref().is_some_and(|object| object.digest != it.object.digest);
        let found = kept::outlived(state, own.get(name).copied(), &object).map(of_version);
        let found: Vec<Earlier> = found.filter(is_other).collect();
        let since = version_that_serves(state);
        if !found.is_empty() && !state.keeps.iter().any(|kept| kept.key == change.key) {
            keep(records, &config, Kept { key: change.key.clone(), since })?;
        }
        earlier.extend(found);
    }
    Ok(earlier)
}

/// What a sequence brings of deployment configs, by their names.
fn brought(run: &SequenceRun) -> BTreeMap<&str, &Change> {
    let configs = run.changes().iter().filter(|change| change.key.kind == Kind::DeploymentConfig);
    configs.map(|change| (&*change.key.name, change)).collect()
}

/// The deployment configs that may run with what changes.
fn users<'a>(own: &BTreeMap<&'a str, &'a Change>, change: &'a Change) -> BTreeSet<&'a str> {
    own.keys().copied().chain(change.needed_by.iter().map(String::as_str)).collect()
}

fn version_that_serves(state: &ConfigState) -> u32 {
    state.serving.as_ref().map_or(0, |serving| serving.number)
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
pub(in crate::engine) fn update_kept(records: &mut Records) -> Result<(), Undecided> {
    let begun: Vec<(ConfigKey, Version)> =
        records.begun().map(|(key, version)| (key.clone(), version.clone())).collect();
    for (config, version) in begun {
        for key in referenced(&version.object) {
            join(records, &config, key)?;
        }
        inherit(records, &config, &version)?;
    }
    let delivered: Vec<ConfigKey> = records.ended().flat_map(went_on).collect();
    let changed = records.keepers().map(|state| state.key.clone());
    for config in changed.chain(delivered).collect::<BTreeSet<_>>() {
        let keeps = records.configs.get(&config)?.map(|state| state.keeps.clone());
        for kept in keeps.unwrap_or_default() {
            release(records, &config, kept)?;
        }
    }
    Ok(())
}

/// The deployment configs that may have gone on with what a sequence has declared otherwise.
fn went_on(run: &SequenceRun) -> BTreeSet<ConfigKey> {
    let is_declared =
        |change: &&Change| change.key.kind != Kind::DeploymentConfig && change.decision != Decision::Delete;
    let is_other = |change: &&Change| change.decision == Decision::Update || !change.needed_by.is_empty();
    let own = brought(run);
    let changed = run.changes().iter().filter(is_declared).filter(is_other);
    changed.flat_map(|change| users(&own, change)).map(|name| run.service.config(name)).collect()
}

/// Git declares a deployment config again: that somebody went back to what serves is no reason any more.
pub(super) fn declared_again(records: &mut Records, config: &ConfigKey) -> Result<(), Undecided> {
    let keeps = records.configs.get(config)?.map(|state| state.keeps.clone()).unwrap_or_default();
    for place in keeps.into_iter().map(|kept| place_in_stage_of(config, kept.key)) {
        let went_back = |it: &Earlier| it.config == config.name && it.went_back;
        if records.objects.get(&place)?.is_some_and(|object| object.earlier.iter().any(went_back))
            && let Some(object) = records.objects.get_mut(&place)?
        {
            object.earlier.iter_mut().filter(|it| went_back(it)).for_each(|it| it.went_back = false);
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

/// A version that goes back to the template of one that runs has of objects what that one has of them: nothing would lead to its
/// pods else where a push has changed both.
fn inherit(records: &mut Records, config: &ConfigKey, version: &Version) -> Result<(), Undecided> {
    let Some(state) = records.configs.get(config)? else { return Ok(()) };
    let template = version.object.template();
    let alike = kept::running(state).filter(|it| it.number != version.number && it.object.template() == template);
    let alike: BTreeSet<u32> = alike.map(|it| it.number).collect();
    let keeps: Vec<ObjectKey> = state.keeps.iter().map(|kept| kept.key.clone()).filter(|_| !alike.is_empty()).collect();
    for place in keeps.into_iter().map(|key| place_in_stage_of(config, key)) {
        let object = records.objects.get(&place)?;
        let its = |it: &&Earlier| it.config == config.name && alike.contains(&it.version);
        let found = object.and_then(|object| object.earlier.iter().find(its)).cloned();
        if let Some(found) = found
            && let Some(object) = records.objects.get_mut(&place)?
        {
            object.earlier.push(Earlier { version: version.number, went_back: true, ..found });
        }
    }
    Ok(())
}

/// The objects that a deployment config keeps, or of which it keeps what they were.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine::deployment) fn kept_by<'a>(
    records: &'a Records,
    config: &ConfigState,
) -> Result<Vec<&'a ObjectState>, Undecided> {
    let (mut found, mut needs) = (Vec::new(), Needs::default());
    for key in config.keeps.iter().map(|kept| kept.key.clone()) {
        found.extend(needs.of(records.objects.get(&place_in_stage_of(&config.key, key)))?.flatten());
    }
    needs.none()?;
    Ok(found)
}

/// A version comes back as another: what objects were for it, they are for that one from now on.
///
/// # Errors
/// If something must be read first.
pub(in crate::engine::deployment) fn hand_on(
    records: &mut Records,
    config: &ConfigState,
    from: u32,
    to: u32,
) -> Result<(), Undecided> {
    let its = |it: &Earlier| it.config == config.key.name && it.version == from;
    let kept = kept_by(records, config)?.into_iter().filter(|object| object.earlier.iter().any(its));
    for place in kept.map(ObjectPlace::from).collect::<Vec<_>>() {
        if let Some(object) = records.objects.get_mut(&place)? {
            object.earlier.iter_mut().filter(|it| its(it)).for_each(|it| it.version = to);
        }
    }
    Ok(())
}

/// What a deployment config needs no longer of an object is kept for it no longer.
fn release(records: &mut Records, config: &ConfigKey, kept: Kept) -> Result<(), Undecided> {
    let place = place_in_stage_of(config, kept.key.clone());
    let before = records.objects.get(&place)?;
    let state = records.configs.get(config)?;
    let now = match before.zip(state) {
        Some((object, state)) => Some(without_superfluous(records, object, state, kept.since)?),
        None => None,
    };
    let needs = now.as_ref().is_some_and(|now| keeps(now, config));
    let now = now.filter(|now| now.is_kept() || !before.is_some_and(ObjectState::is_kept));
    if now.as_ref() != before {
        records.objects.put(&place, now)?;
    }
    if !needs && let Some(state) = records.configs.get_mut(config)? {
        state.keeps.retain(|known| known.key != kept.key);
    }
    Ok(())
}

/// Whether something is kept of an object for a deployment config.
fn keeps(object: &ObjectState, config: &ConfigKey) -> bool {
    object.kept_by.contains(&config.name) || object.earlier.iter().any(|earlier| earlier.config == config.name)
}

/// An object without what a deployment config, which keeps it since version `since` served, needs of it no longer.
fn without_superfluous(
    records: &Records,
    object: &ObjectState,
    config: &ConfigState,
    since: u32,
) -> Result<ObjectState, Undecided> {
    let mut now = object.clone();
    if !kept::needs(config, object, since) {
        now.kept_by.remove(&config.key.name);
    }
    let (its, others): (Vec<Earlier>, Vec<Earlier>) =
        now.earlier.into_iter().partition(|earlier| earlier.config == config.key.name);
    now.earlier = others;
    for earlier in its {
        let by = records.runs.get(&earlier.by)?.and_then(Run::sequence);
        let is_coming = by.is_some_and(|run| run.ended_at.is_none());
        if kept::needs_earlier(config, &earlier, is_coming) {
            now.earlier.push(earlier);
        }
    }
    Ok(now)
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
    use crate::model::state::{Beside, Standing};
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
        let destination = Destination::local("shop-dev".into());
        ObjectState::new(("shop".into(), "dev".into()), destination, "repo".into(), object.into())
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

    #[test]
    fn what_changes_stays_what_it_was_for_what_is_to_be_replaced_or_stands_beside_it() {
        let by = delivery("s1", "b");
        let serves =
            ConfigState { serving: Some(reading("old", 1)), object: reading("old", 1).object, ..serving(1, "a") };
        let stands = Beside { version: reading("old", 3), standing: Standing::Part(10) };
        let failed = attempted(serves.clone(), "b", &by, Some(Outcome::FAIL));
        let under_way = attempted(serves.clone(), "b", &by, None);
        let declared = ConfigState { object: reading("new", 2).object, ..serves.clone() };
        let beside = ConfigState { beside: Some(stands), ..failed.clone() };
        let compared = ConfigState { beside: beside.beside.clone(), ..serves.clone() };
        let brings = |decision, map| {
            let object = reading(map, 2).object;
            Change { object: Some(object.clone()), ..Change::of(object.key.clone(), decision) }
        };
        let (deploy, same) = (brings(Decision::Deploy, "new"), brings(Decision::None, "old"));
        let (update, waits) = (brings(Decision::Update, "new"), brings(Decision::Wait, "new"));
        let cases = [
            ("nothing comes", &serves, None, "", ""),
            ("the same comes", &serves, Some(&same), "", ""),
            ("another one comes", &serves, Some(&deploy), "1", ""),
            ("another one is only declared", &serves, Some(&update), "1", ""),
            ("another one waits", &serves, Some(&waits), "", ""),
            ("another one was only declared", &declared, None, "1", "1"),
            ("another one is under way", &under_way, None, "1", "1 2"),
            ("another one has failed", &failed, None, "1", "1"),
            ("one stands beside it", &beside, None, "1 3", "1 3"),
            ("one stands beside what stays", &compared, None, "3", "3"),
            ("it goes", &ConfigState { removed: true, ..failed.clone() }, None, "", ""),
        ];
        let numbers = |versions: Vec<u32>| versions.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        for (case, state, brought, expected, still) in cases {
            for (kind, name) in [(Kind::ConfigMap, "old"), (Kind::Secret, "key"), (Kind::Service, "front")] {
                let object = object(kind, name);
                let outlived = kept::outlived(state, brought, &object).map(|version| version.number).collect();
                assert_eq!(numbers(outlived), expected, "{case}, {name}");
            }
            for (kind, name) in [(Kind::ConfigMap, "other"), (Kind::PersistentVolumeClaim, "data")] {
                let object = object(kind, name);
                assert_eq!(kept::outlived(state, brought, &object).count(), 0, "{case}, {name}");
            }
            let earlier = |version| {
                let object = object(Kind::ConfigMap, "old").object;
                Earlier { config: "web".into(), version, by: "s1".into(), went_back: false, object }
            };
            let needed = |is_coming| {
                let needs = |version: &u32| kept::needs_earlier(state, &earlier(*version), is_coming);
                numbers([1, 2, 3].into_iter().filter(needs).collect())
            };
            assert_eq!(needed(false), still, "{case}, afterwards");
            assert_eq!(needed(true).contains('1'), !state.removed, "{case}, while it may come");
        }
    }
}
