//! What webhooks came to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time;
use crate::model::webhook_call::WebhookCall;

/// A webhook's delivery, or several that were refused alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookCallView {
    /// When it came, or the last of them.
    pub at: String,
    /// The host that it said it was from.
    pub host: String,
    /// The host's id of it.
    pub id: Option<String>,
    /// The host's name of the event.
    pub event: Option<String>,
    /// The ref in full.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The commit before.
    pub before: Option<String>,
    /// The commit after, as the host said.
    pub after: Option<String>,
    /// `accepted`, `ignored`, `duplicate` or `refused`.
    pub result: String,
    /// The status code of the answer.
    pub status: u16,
    /// Why it was not accepted, or what people should know although it was.
    pub reason: Option<String>,
    /// How many there were.
    pub times: u64,
}

impl From<&WebhookCall> for WebhookCallView {
    fn from(call: &WebhookCall) -> Self {
        Self {
            at: time(call.at),
            host: call.host.clone(),
            id: call.id.clone(),
            event: call.event.clone(),
            reference: call.reference.clone(),
            before: call.before.clone(),
            after: call.after.clone(),
            result: call.result.as_str().to_owned(),
            status: call.status,
            reason: call.reason.clone(),
            times: call.times,
        }
    }
}
