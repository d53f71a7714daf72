//! What a deployer of the user's own has asked for.

use serde::{Deserialize, Serialize};

/// Where a deployer of the user's own is with its deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Deployer {
    /// Whether its pod was started.
    pub started: bool,
    /// What it has asked for last; nothing, as long as what served before is to serve on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Whether that was seen to be there.
    pub settled: bool,
    /// How often it has asked for something.
    pub asks: u32,
    /// Why it is not, although the time for it is over, for people; empty before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stalled: String,
}

/// What should run while a deployer is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asked {
    /// So many pods, at once: what is missing meanwhile is the deployer's to answer for.
    Scale {
        /// Of the new version.
        new: u32,
        /// Of the one that served before; as many as there are replicas, if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<u32>,
    },
    /// The strategy's own exchange, until so many in a hundred of the replicas are the new version's.
    Until {
        /// 0 to 100.
        percent: u32,
    },
}

impl Deployer {
    /// Whether nothing has become of it yet.
    pub fn is_untouched(&self) -> bool {
        *self == Self::default()
    }

    /// How far the strategy's own exchange has been asked to go, in percent.
    pub fn until(&self) -> u32 {
        match self.asked {
            Some(Asked::Until { percent }) => percent,
            Some(Asked::Scale { .. }) | None => 0,
        }
    }
}
