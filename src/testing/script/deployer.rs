//! What deployers of the user's own ask for.

use crate::control::commands::by_hand;
use crate::engine::deployment::deployer::{Ask, at_work};
use crate::error::{Failure, Result};
use crate::executor::drive::Driver;
use crate::model::ids::ConfigKey;
use crate::model::run::Run;

/// The deployer of a deployment config that is at work asks for something; says which value of what is wanted that is.
pub(crate) async fn asks(driver: &Driver, config: &ConfigKey, words: &[&str]) -> Result<String> {
    let state = driver.store.config(config).await?.map(|state| state.value);
    let latest = state.map_or(0, |state| state.latest_version);
    let run = config.deployment(latest);
    let known = driver.store.run(&run).await?.map(|run| run.value);
    let pod = match &known {
        Some(Run::Deployment(run)) => at_work(run),
        Some(Run::Sequence(_)) | None => None,
    };
    let pod = pod.cloned().ok_or_else(|| Failure::stalled("no deployer is at work"))?;
    let number = |key: &str| {
        let value = words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.map(super::number::<u32>).transpose()
    };
    let ask = match number("until")? {
        Some(percent) => Ask::Until { percent },
        None => {
            let controller = words.iter().find_map(|word| word.strip_prefix("of=")).map(str::to_owned);
            Ask::Scale { controller, new: number("new")?, old: number("old")? }
        }
    };
    let generation = by_hand::deployer_asks(driver, &run, &pod, ask).await?;
    Ok(format!("asks #{generation}"))
}
