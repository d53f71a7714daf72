//! What a deployment config would be deployed as, and just that deployed. Source: OpenShift's generators, of which the answer
//! is what a client sends back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::control::commands::operator::{conflict, rollout};
use crate::control::commands::{Done, Refusal};
use crate::engine::by_hand::{self, Generated, Images};
use crate::engine::records::{Records, Undecided};
use crate::engine::rollback::{self, RolledBack};
use crate::engine::transition::Transition;
use crate::error::Failure;
use crate::executor::drive::Driver;
use crate::model::ids::{ConfigKey, Digest};
use crate::model::object::Object;
use crate::model::rollback::Rollback;

/// What is generated of a deployment config, and whether it is deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerateCommand {
    /// Which.
    pub config: ConfigKey,
    /// From what.
    pub from: Generator,
    /// Deploy it, if it is still this.
    #[serde(default)]
    pub carry_out: Option<Digest>,
}

/// From what a deployment config is generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Generator {
    /// From what is declared now and the images that are meant.
    Declared(Images),
    /// From an earlier version too.
    Rollback(Rollback),
}

/// What was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it would be.
    pub generated: Generated,
    /// Of a rollback: the version that it goes back to.
    pub back_to: Option<u32>,
}

/// Says what a deployment config would be, or deploys just that; `title` is what it is called.
///
/// # Errors
/// If it is refused, or has become something else.
pub async fn generate(driver: &Driver, title: &str, asked: GenerateCommand, by: &str) -> Result<Done, Refusal> {
    let Some(expected) = &asked.carry_out else {
        let decide = |transition: &mut Transition<'_>| candidate(transition, &asked, by);
        let (candidate, ..) = driver.work_out(&mut Records::default(), decide).await.map_err(conflict)?;
        return Ok(Done { candidate: Some(Box::new(candidate)), ..Done::default() });
    };
    let version = driver.decide(|transition| carry_out(transition, &asked, expected, by)).await.map_err(conflict)?;
    Ok(rollout(&asked.config, version, format!("{title} rolled out")))
}

fn candidate(transition: &mut Transition<'_>, asked: &GenerateCommand, by: &str) -> Result<Candidate, Undecided> {
    let GenerateCommand { config, from, .. } = asked;
    let rollback = match from {
        Generator::Declared(images) => {
            let generated = by_hand::generate(transition.records, config, *images)?;
            return Ok(Candidate { generated, back_to: None });
        }
        Generator::Rollback(rollback) => rollback,
    };
    let RolledBack { object, version, to, .. } = goes_back(transition, rollback, by)?;
    // What is paused is refused before.
    Ok(Candidate { generated: Generated { object, version, is_new: true, is_paused: false }, back_to: Some(to) })
}

fn goes_back(transition: &mut Transition<'_>, rollback: &Rollback, by: &str) -> Result<RolledBack, Undecided> {
    let started = rollback::roll_back(transition, std::slice::from_ref(rollback), by)?;
    let nothing = || Failure::stalled(started.left.join("; "));
    Ok(started.members.into_iter().next().ok_or_else(nothing)?)
}

/// Deploys what is generated, in the one decision in which it is compared with what was to be deployed; says as which version.
fn carry_out(
    transition: &mut Transition<'_>,
    asked: &GenerateCommand,
    expected: &Digest,
    by: &str,
) -> Result<u32, Undecided> {
    let (object, version): (Arc<Object>, u32) = match &asked.from {
        Generator::Declared(images) => {
            let latest = by_hand::latest(transition, &asked.config, *images, by)?;
            (latest.object, latest.version)
        }
        Generator::Rollback(rollback) => {
            let back = goes_back(transition, rollback, by)?;
            (back.object, back.version)
        }
    };
    if object.digest == *expected {
        return Ok(version);
    }
    let moved = format!("what `{}` would be has changed since it was generated", asked.config.name);
    Err(Failure::stalled(moved).hint("have it generated again").into())
}
