//! What the host of a repository has told by webhooks, and what came of it: for people who wonder why nothing happens.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// So many calls are kept that were the host's.
const MOST_TAKEN: usize = 100;
/// So many kinds of calls are kept that were not.
const MOST_REFUSED: usize = 20;
/// The longest text that is kept of a call, in characters.
const LONGEST: usize = 200;

/// A call, or several that were refused alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookCall {
    /// When it came, or the last of them.
    pub at: Timestamp,
    /// The host that it said it was from.
    pub host: String,
    /// The host's id of the delivery.
    pub id: Option<String>,
    /// The host's name of the event.
    pub event: Option<String>,
    /// The ref in full.
    pub reference: Option<String>,
    /// The commit before.
    pub before: Option<String>,
    /// The commit after, as it said.
    pub after: Option<String>,
    /// What came of it.
    pub result: CallResult,
    /// The status code of the answer.
    pub status: u16,
    /// Why it was not accepted, or what people should know although it was.
    pub reason: Option<String>,
    /// How many there were.
    pub times: u64,
}

/// What comes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallResult {
    /// The repository is synced, or what a person asks for is done.
    Accepted,
    /// It is the host's, and about nothing that matters here.
    Ignored,
    /// It was taken before.
    Duplicate,
    /// It is not known to be the host's, or cannot be read.
    Refused,
}

impl CallResult {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            CallResult::Accepted => "accepted",
            CallResult::Ignored => "ignored",
            CallResult::Duplicate => "duplicate",
            CallResult::Refused => "refused",
        }
    }
}

/// The last calls about a repository, oldest first. Those that anybody can make are kept apart, and counted, so that they push
/// out none of the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookCalls {
    taken: VecDeque<WebhookCall>,
    refused: VecDeque<WebhookCall>,
    /// The host's id of the repository, once a call has named it as it is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repository_id: Option<String>,
}

impl WebhookCalls {
    /// One more, in place of the oldest of its sort where there are too many.
    pub fn remember(&mut self, call: WebhookCall) {
        let mut call = call.shortened();
        let (calls, most) = match call.result {
            CallResult::Refused => (&mut self.refused, MOST_REFUSED),
            CallResult::Accepted | CallResult::Ignored | CallResult::Duplicate => (&mut self.taken, MOST_TAKEN),
        };
        let alike = |known: &WebhookCall| {
            call.result == CallResult::Refused
                && (&known.host, known.status, &known.reason) == (&call.host, call.status, &call.reason)
        };
        if let Some(known) = calls.iter().position(alike).and_then(|place| calls.remove(place)) {
            call.times = call.times.saturating_add(known.times);
        }
        calls.push_back(call);
        calls.drain(..calls.len().saturating_sub(most));
    }

    /// The host's id of the repository, if a call has told it together with the name under which it is configured.
    pub fn repository_id(&self) -> Option<&str> {
        self.repository_id.as_deref()
    }

    /// Keeps the host's id of the repository, where there is one.
    pub fn know(&mut self, id: Option<String>) {
        self.repository_id = id.or(self.repository_id.take());
    }

    /// These, and then those that came later.
    #[must_use]
    pub fn then(mut self, later: Self) -> Self {
        self.know(later.repository_id);
        later.taken.into_iter().chain(later.refused).for_each(|call| self.remember(call));
        self
    }

    /// All of them, newest first.
    pub fn newest_first(&self) -> Vec<&WebhookCall> {
        let mut calls: Vec<&WebhookCall> = self.refused.iter().chain(&self.taken).rev().collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.at));
        calls
    }
}

impl WebhookCall {
    fn shortened(mut self) -> Self {
        for text in [&mut self.id, &mut self.event, &mut self.reference, &mut self.before, &mut self.after] {
            shorten(text);
        }
        shorten(&mut self.reason);
        self
    }
}

fn shorten(text: &mut Option<String>) {
    if let Some(text) = text
        && let Some((end, _)) = text.char_indices().nth(LONGEST)
    {
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(at: i64, result: CallResult, reason: &str) -> WebhookCall {
        WebhookCall {
            at: Timestamp(at),
            host: "gitea".into(),
            id: Some(at.to_string()),
            event: None,
            reference: None,
            before: None,
            after: None,
            result,
            status: if result == CallResult::Refused { 401 } else { 200 },
            reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()),
            times: 1,
        }
    }

    fn told(calls: &WebhookCalls) -> Vec<(i64, u64)> {
        calls.newest_first().into_iter().map(|call| (call.at.0, call.times)).collect()
    }

    #[test]
    fn what_is_refused_alike_is_counted_and_pushes_out_nothing_of_the_hosts() {
        let mut calls = WebhookCalls::default();
        calls.remember(call(1, CallResult::Accepted, ""));
        for at in 2..5000 {
            calls.remember(call(at, CallResult::Refused, "no signature"));
        }
        calls.remember(call(5000, CallResult::Refused, "another secret"));
        calls.remember(call(5001, CallResult::Ignored, "another branch"));
        assert_eq!(told(&calls), [(5001, 1), (5000, 1), (4999, 4998), (1, 1)]);
    }

    #[test]
    fn the_newest_of_each_sort_stay() {
        let (mut calls, mut later) = (WebhookCalls::default(), WebhookCalls::default());
        for at in 0..MOST_TAKEN {
            calls.remember(call(i64::try_from(at).unwrap(), CallResult::Ignored, ""));
            later.remember(call(1000 + i64::try_from(at).unwrap(), CallResult::Refused, &at.to_string()));
        }
        later.remember(call(2000, CallResult::Duplicate, ""));
        let all = calls.then(later);
        let times: Vec<i64> = told(&all).into_iter().map(|(at, _)| at).collect();
        assert_eq!(times.len(), MOST_TAKEN + MOST_REFUSED);
        assert_eq!((times[0], times[1], times[MOST_REFUSED], *times.last().unwrap()), (2000, 1099, 1080, 1));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut calls = WebhookCalls::default();
        calls.remember(call(1, CallResult::Ignored, &"ü".repeat(1000)));
        assert_eq!(calls.newest_first()[0].reason, Some("ü".repeat(LONGEST)));
    }
}
