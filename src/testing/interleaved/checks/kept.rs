//! What runs finds what it reads once nothing is under way any more.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::read_by_pods;
use crate::model::ids::RunId;
use crate::model::state::{ConfigState, Earlier, ObjectState};
use crate::model::transaction::ObjectPlace;
use crate::plan::kept;
use crate::store::RunFilter;
use crate::testing::interleaved::checks::rest::At;
use crate::testing::interleaved::checks::{Held, Invariant, Violation};
use crate::testing::interleaved::people::now;

impl At<'_> {
    /// A version that serves has become ready with what it reads, so it is still there; what files declare no longer is kept by
    /// those that need it and by nobody else.
    pub(super) fn finds_what_it_reads(&self) -> Held {
        let objects = now(self.store.objects(None, None, None))?.whole()?.into_iter().map(|it| it.value);
        let objects: BTreeMap<ObjectPlace, ObjectState> =
            objects.map(|state| (ObjectPlace::from(&state), state)).collect();
        let configs: Vec<ConfigState> =
            now(self.store.configs(None, None))?.whole()?.into_iter().map(|it| it.value).collect();
        let found = configs.iter().map(|config| finds(config, &objects)).find(Result::is_err).unwrap_or(Ok(()));
        let runs = now(self.store.runs(&RunFilter { open: Some(true), ..RunFilter::default() }))?.whole()?;
        let open: BTreeSet<RunId> = runs.iter().map(|run| run.value.id().clone()).collect();
        let is_kept_for = |object| is_kept_for(object, &configs, |run| open.contains(run));
        let found = found.and_then(|()| objects.values().try_for_each(is_kept_for));
        Ok(found.map_err(|what| Violation::new(Invariant::FindsWhatItReads, what)))
    }
}

fn finds(config: &ConfigState, objects: &BTreeMap<ObjectPlace, ObjectState>) -> Result<(), String> {
    let beside = config.beside.as_ref().map(|beside| &beside.version);
    for version in config.serving.iter().chain(beside) {
        for key in read_by_pods(&version.object) {
            let (project, stage) = (config.key.project.clone(), config.key.stage.clone());
            if !objects.contains_key(&ObjectPlace { project, stage, key: key.clone() }) {
                return Err(format!("{} #{} reads {key}, which is gone", config.key, version.number));
            }
        }
    }
    Ok(())
}

fn is_kept_for(object: &ObjectState, configs: &[ConfigState], is_open: impl Fn(&RunId) -> bool) -> Result<(), String> {
    let in_stage = |config: &&ConfigState| (&config.key.project, &config.key.stage) == (&object.project, &object.stage);
    let key = &object.object.key;
    for name in &object.kept_by {
        let keeper = configs.iter().filter(in_stage).find(|config| config.key.name == *name);
        let keeps = |config: &ConfigState| {
            config.keeps.iter().any(|kept| kept.key == *key && kept::needs(config, object, kept.since))
        };
        if !keeper.is_some_and(keeps) {
            return Err(format!("{key} of {} is kept by {name}, which does not need it", object.stage));
        }
    }
    for earlier in &object.earlier {
        let keeper = configs.iter().filter(in_stage).find(|config| config.key.name == earlier.config);
        let keeps = |config: &ConfigState| {
            config.keeps.iter().any(|kept| kept.key == *key)
                && kept::needs_earlier(config, earlier, is_open(&earlier.by))
        };
        if !keeper.is_some_and(keeps) {
            let Earlier { config, version, .. } = earlier;
            return Err(format!(
                "{key} of {} is another for {config} #{version}, which does not need that",
                object.stage
            ));
        }
    }
    Ok(())
}
