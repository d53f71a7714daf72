//! Takes repositories down and brings them up again. What comes of it is decided in [`crate::engine::by_hand`].

use std::collections::BTreeSet;

use crate::engine::by_hand;
use crate::engine::records::Records;
use crate::engine::transition::Transition;
use crate::error::Result;
use crate::executor::drive::{Driver, TRIES, keeps_changing};
use crate::model::ids::{ConfigKey, ProjectName, RepositoryName};
use crate::model::state::ConfigState;
use crate::model::transaction::RecordKey;

/// Stops everything that a repository runs; nothing comes back by itself. Says how many deployment configs stop.
///
/// # Errors
/// If the store fails.
pub async fn down(driver: &Driver, repository: &RepositoryName, by: &str) -> Result<usize> {
    let mut stopped = keys(configs_of(driver, repository).await?);
    driver.decide(|transition| by_hand::take_down(transition, repository, &stopped, by)).await?;
    stopped.extend(finish_down(driver, repository).await?);
    let declared = driver.store.repository(repository).await?.and_then(|state| state.value.project);
    let projects: BTreeSet<ProjectName> = stopped.iter().map(|key| key.project.clone()).chain(declared).collect();
    for project in projects {
        driver.examine_slots(&project).await?;
    }
    Ok(stopped.len())
}

/// Stops what was deployed for the first time while its repository was being taken down: from then on nothing is. Whoever
/// took it down may have died before that, so it is asked for again when a daemon starts. Says what it was.
///
/// # Errors
/// If the store fails.
pub async fn finish_down(driver: &Driver, repository: &RepositoryName) -> Result<BTreeSet<ConfigKey>> {
    let mut missed = configs_of(driver, repository).await?;
    missed.retain(ConfigState::is_at_work);
    let missed = keys(missed);
    if !missed.is_empty() {
        driver.decide(|transition| by_hand::stop_missed(transition, repository, &missed)).await?;
    }
    Ok(missed)
}

/// Brings back what a repository ran before it was taken down; says whether it was.
///
/// # Errors
/// If the store fails.
pub async fn up(driver: &Driver, repository: &RepositoryName, by: &str) -> Result<bool> {
    for _ in 0..TRIES {
        // Before its deployment configs: nobody who takes it down meanwhile may stop one that is not among them.
        let mut records = Records::default();
        records.repositories.read(repository.clone(), driver.store.repository(repository).await?);
        let configs = keys(configs_of(driver, repository).await?);
        let bring_up = |transition: &mut Transition<'_>| by_hand::bring_up(transition, repository, &configs, by);
        if let Some(was_down) = driver.try_decide(&mut records, bring_up).await? {
            return Ok(was_down);
        }
    }
    Err(keeps_changing())
}

/// What a repository runs; one that cannot be read may be among it if it is of its project.
async fn configs_of(driver: &Driver, repository: &RepositoryName) -> Result<Vec<ConfigState>> {
    let project = driver.store.repository(repository).await?.and_then(|state| state.value.project);
    let of_project = |key: &RecordKey| matches!(key, RecordKey::Config(key) if Some(&key.project) == project.as_ref());
    let mut configs = driver.store.configs(None, None).await?;
    configs.damaged.retain(|damaged| project.is_none() || of_project(&damaged.key));
    let mine = |config: &ConfigState| &config.repository == repository;
    Ok(configs.whole()?.into_iter().map(|config| config.value).filter(mine).collect())
}

fn keys(configs: Vec<ConfigState>) -> BTreeSet<ConfigKey> {
    configs.into_iter().map(|config| config.key).collect()
}
