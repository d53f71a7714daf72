//! Counters, for Prometheus. Labels take few values: names from the configuration and words of this program.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use crate::model::action::Lane;
use crate::model::ids::RepositoryName;
use crate::model::outcome::Outcome;
use crate::model::run::RunKind;
use crate::store::CommitError;

/// The media type of [`Metrics::encode`].
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;

/// What the daemon counts.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    syncs: Counters<1>,
    healthy: Family<Labels<1>, Gauge>,
    webhooks: Counters<2>,
    runs_started: Counters<1>,
    runs_ended: Counters<2>,
    actions: Counters<2>,
    commits: Counters<1>,
    lost_wakeups: Counters<1>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All counters at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("launchway");
        Self {
            syncs: add(&mut registry, "repository_syncs", "Syncs with the remote, whatever caused them"),
            healthy: add(&mut registry, "repository_healthy", "Whether the last sync with the remote went well"),
            webhooks: add(&mut registry, "webhooks", "Webhook calls by their answer"),
            runs_started: add(&mut registry, "runs_started", "Runs that were created"),
            runs_ended: add(&mut registry, "runs_ended", "Runs that ended, by outcome"),
            actions: add(&mut registry, "actions", "Actions that were performed or failed"),
            commits: add(&mut registry, "store_commits", "Transactions by their outcome"),
            lost_wakeups: add(&mut registry, "lost_wakeups", "Actions that were due and that nobody was woken for"),
            registry,
        }
    }

    /// A sync with a repository's remote began.
    pub fn sync(&self, repository: &RepositoryName) {
        self.syncs.get_or_create(&[named(repository)]).inc();
    }

    /// A sync ended; whether what was found could be read.
    pub fn repository_healthy(&self, repository: &RepositoryName, healthy: bool) {
        self.healthy.get_or_create(&[named(repository)]).set(i64::from(healthy));
    }

    /// A webhook call of a known repository was answered: `accepted`, `ignored`, `duplicate` or `refused`.
    pub fn webhook(&self, repository: &RepositoryName, answer: &'static str) {
        self.webhooks.get_or_create(&[named(repository), ("result", answer.to_owned())]).inc();
    }

    /// A run was created.
    pub fn run_started(&self, kind: RunKind) {
        self.runs_started.get_or_create(&[labelled(kind)]).inc();
    }

    /// A run ended.
    pub fn run_ended(&self, kind: RunKind, outcome: Outcome) {
        self.runs_ended.get_or_create(&[labelled(kind), ("outcome", outcome.word().to_owned())]).inc();
    }

    /// An action was `performed`, `waits` for something, or `failed` and may be tried again.
    pub fn action(&self, key: &str, result: &'static str) {
        let kind = key.split('/').next().unwrap_or_default().to_owned();
        self.actions.get_or_create(&[("action", kind), ("result", result.to_owned())]).inc();
    }

    /// A transaction was committed or refused.
    pub fn commit(&self, outcome: &Result<(), CommitError>) {
        let outcome = match outcome {
            Ok(()) => "committed",
            Err(CommitError::Conflict { .. }) => "conflict",
            Err(CommitError::Fenced) => "fenced",
            Err(CommitError::Failed(_)) => "failed",
        };
        self.commits.get_or_create(&[("outcome", outcome.to_owned())]).inc();
    }

    /// So many actions of a lane were found by its safety net alone, some time after they had come due.
    pub fn lost_wakeups(&self, lane: &Lane, count: usize) {
        if count > 0 {
            let lane = lane.to_string();
            tracing::error!(lane, count, "actions were due, and nobody was woken for them");
            self.lost_wakeups.get_or_create(&[("lane", lane)]).inc_by(count as u64);
        }
    }

    /// So many pods had changed some time ago, and only the runtime's safety net found that.
    pub fn overlooked_pods(&self, count: usize) {
        if count > 0 {
            tracing::error!(count, "pods had changed without an event");
            self.lost_wakeups.get_or_create(&[("lane", "pods".to_owned())]).inc_by(count as u64);
        }
    }

    /// All numbers as OpenMetrics text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        encode(&mut text, &self.registry).unwrap_or_default();
        text
    }
}

fn labelled(kind: RunKind) -> (&'static str, String) {
    ("kind", kind.as_str().to_owned())
}

fn named(repository: &RepositoryName) -> (&'static str, String) {
    ("repository", repository.as_str().to_owned())
}

/// Registers a metric; counters get the ending `_total`.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told_in_openmetrics() {
        let metrics = Metrics::new();
        let shop = RepositoryName::from("shop");
        metrics.sync(&shop);
        metrics.sync(&shop);
        metrics.repository_healthy(&shop, true);
        metrics.webhook(&shop, "accepted");
        metrics.run_started(RunKind::Sequence);
        metrics.run_ended(RunKind::Deployment, Outcome::FAIL);
        metrics.action("timer/retry", "failed");
        metrics.commit(&Ok(()));
        metrics.commit(&Err(CommitError::Fenced));
        let text = metrics.encode();
        let expected = [
            "launchway_repository_syncs_total{repository=\"shop\"} 2",
            "launchway_repository_healthy{repository=\"shop\"} 1",
            "launchway_webhooks_total{repository=\"shop\",result=\"accepted\"} 1",
            "launchway_runs_started_total{kind=\"sequence\"} 1",
            "launchway_runs_ended_total{kind=\"deployment\",outcome=\"failure\"} 1",
            "launchway_actions_total{action=\"timer\",result=\"failed\"} 1",
            "launchway_store_commits_total{outcome=\"committed\"} 1",
            "launchway_store_commits_total{outcome=\"fenced\"} 1",
            "# EOF",
        ];
        for line in expected {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
