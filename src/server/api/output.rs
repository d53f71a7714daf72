//! What pods print.

use std::future::ready;

use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::{StreamExt as _, TryStreamExt as _, iter, select_all};
use serde::Deserialize;

use super::extract::Parameters;
use crate::clock::{Clock, SystemClock};
use crate::error::Failure;
use crate::model::time::Timestamp;
use crate::runtime::logs::LogQuery;
use crate::server::problem::{Answer, Problem};
use crate::server::query::{Selection, Versions};
use crate::server::state::ServerState;

/// The most pods that one answer follows: each keeps a file open.
const MOST_FOLLOWED: usize = 50;

/// Whose output, and which part of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LogParameters {
    /// Only this pod's.
    pub pod: Option<String>,
    /// Only this container's.
    pub container: Option<String>,
    /// The last so many lines of each container.
    pub tail: Option<u64>,
    /// The last so many bytes of each container.
    pub bytes: Option<u64>,
    /// What was printed in the last so many seconds.
    pub since_seconds: Option<u64>,
    /// What was printed since this RFC 3339 time.
    pub since_time: Option<jiff::Timestamp>,
    /// Whether the time stands before each line.
    pub timestamps: bool,
    /// Of a deployment config the version before; of a pod what it printed before it was started again.
    pub previous: bool,
    /// Of a deployment config this version.
    pub version: Option<u32>,
    /// Of a deployment config all versions whose pods are kept.
    pub all: bool,
    /// Whether to go on with what comes, until the pods end.
    pub follow: bool,
}

impl LogParameters {
    /// Which versions are meant, where a deployment config is.
    fn versions(&self) -> Versions {
        match (self.version, self.all, self.previous) {
            (Some(version), ..) => Versions::Number(version),
            (None, true, _) => Versions::All,
            (None, false, true) => Versions::Previous,
            (None, false, false) => Versions::Current,
        }
    }

    fn query(&self, is_of_config: bool) -> LogQuery {
        let ago = |seconds: u64| {
            let milliseconds = i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
            Timestamp(SystemClock.now().0.saturating_sub(milliseconds))
        };
        LogQuery {
            container: self.container.clone(),
            tail: self.tail,
            bytes: self.bytes,
            since: self.since_time.map(|time| Timestamp(time.as_millisecond())).or(self.since_seconds.map(ago)),
            timestamps: self.timestamps,
            previous: self.previous && !is_of_config,
            follow: self.follow,
        }
    }
}

/// The output of the chosen pods, each line with its pod's name before it where there are several; on request also what
/// follows, until the pods end.
pub(in crate::server) async fn logs(
    State(state): State<ServerState>,
    Parameters(selection): Parameters<Selection>,
    Parameters(which): Parameters<LogParameters>,
) -> Answer<impl IntoResponse> {
    let is_of_config = selection.name.is_some() && which.pod.is_none();
    let mut pods = state.query.observed(&selection).await?;
    pods.retain(|pod| which.pod.as_deref().is_none_or(|name| pod.id.name.as_str() == name));
    let there = pods.len();
    if is_of_config {
        pods = state.query.of_versions(pods, &selection, which.versions()).await?;
    }
    if pods.is_empty() {
        return Err(if there > 0 { no_version(&which) } else { no_pod(&selection, &which) });
    }
    if which.follow && pods.len() > MOST_FOLLOWED {
        let detail =
            format!("{} pods are more than {MOST_FOLLOWED}, which is the most that can be followed", pods.len());
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).hint("choose by `name`, `stage` or `pod`"));
    }
    let (runtime, query) = (state.query.runtime()?, which.query(is_of_config));
    let (several, mut outputs) = (pods.len() > 1, Vec::new());
    for id in pods.into_iter().map(|pod| pod.id) {
        let output = runtime.logs(&id, &query).await.map_err(|failure| Problem::of_pod(&failure))?;
        let output = output.or_else(|failure| ready(Ok::<_, Failure>(told(&failure))));
        outputs.push(output.map_ok(move |text| if several { prefixed(id.name.as_str(), &text) } else { text }));
    }
    let ends = state.stop.clone().cancelled_owned();
    let body = match which.follow {
        true => Body::from_stream(select_all(outputs).take_until(ends)),
        false => Body::from_stream(iter(outputs).flatten()),
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body))
}

fn no_version(which: &LogParameters) -> Problem {
    let detail = match which.versions() {
        Versions::Number(version) => format!("no pod of version {version} is kept"),
        Versions::Previous => "no pod of an earlier version is kept".to_owned(),
        Versions::Current | Versions::All => "no pod of the version that serves or is attempted is there".to_owned(),
    };
    Problem::not_found(detail).hint("`--all` shows what is kept of all versions")
}

fn no_pod(selection: &Selection, which: &LogParameters) -> Problem {
    let (detail, hint) = match (&which.pod, &selection.name, &selection.run) {
        (Some(pod), ..) => (format!("there is no pod `{pod}`"), "`launchway get pods --all` lists them".to_owned()),
        (None, Some(name), _) => (
            format!("no pod of a deployment config `{name}` is there"),
            format!(
                "`launchway logs pod/{name}` shows the output of a pod of that name; `launchway get pods --all` lists them"
            ),
        ),
        (None, None, Some(run)) => (
            format!("no pod of a run `{run}` is there"),
            "`launchway get runs` lists runs, `launchway get pods --all` the pods that are kept".to_owned(),
        ),
        (None, None, None) => ("there is no pod".to_owned(), "`launchway why dc/NAME` says why".to_owned()),
    };
    Problem::not_found(detail).hint(hint)
}

/// One pod whose output cannot be read any more does not end that of others.
fn told(failure: &Failure) -> Vec<u8> {
    format!("{}\n", failure.one_line()).into_bytes()
}

fn prefixed(pod: &str, output: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        text.extend_from_slice(format!("[{pod}] ").as_bytes());
        text.extend_from_slice(line);
    }
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_pods_name_their_pod() {
        let text = |output: &[u8]| String::from_utf8(prefixed("web-1-0", output)).expect("text");
        assert_eq!(text(b"one\ntwo"), "[web-1-0] one\n[web-1-0] two\n");
        assert_eq!(text(b""), "");
    }
}
