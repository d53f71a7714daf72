//! How to ask a container whether it is well, and how to tell it something: the part of Kubernetes' probes and handlers that
//! launchway reads.
//!
//! These are views of content whose defaults are already applied; fields that only another runtime understands
//! stay in the content and are not listed here. Source of names and defaults: Kubernetes `core/v1`.

use serde::{Deserialize, Serialize};

use super::template::Scalar;

/// `Probe`; exactly one handler is set. All periods are seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// The check.
    #[serde(flatten)]
    pub handler: Handler,
    /// From the container's start to the first check.
    pub initial_delay_seconds: u32,
    /// From check to check.
    pub period_seconds: u32,
    /// How long one check may take.
    pub timeout_seconds: u32,
    /// Successes in a row that count as healthy.
    pub success_threshold: u32,
    /// Failures in a row that count as unhealthy.
    pub failure_threshold: u32,
}

impl Default for Probe {
    /// Kubernetes' own defaults.
    fn default() -> Self {
        Self {
            handler: Handler::default(),
            initial_delay_seconds: 0,
            period_seconds: 10,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
        }
    }
}

/// `ProbeHandler` and `LifecycleHandler`: exactly one is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Handler {
    /// A command in the container; exit code 0 is good.
    pub exec: Option<ExecHandler>,
    /// An HTTP GET; 200 to 399 is good.
    pub http_get: Option<HttpGetHandler>,
    /// A connection; being accepted is good.
    pub tcp_socket: Option<TcpSocketHandler>,
    /// A pause, in lifecycle handlers only.
    pub sleep: Option<SleepHandler>,
}

/// `ExecAction`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecHandler {
    /// The command, not run by a shell.
    pub command: Vec<String>,
}

/// `HTTPGetAction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpGetHandler {
    /// `/` unless given.
    #[serde(default)]
    pub path: Option<String>,
    /// A declared port's number or name.
    pub port: Scalar,
    /// The pod unless given.
    #[serde(default)]
    pub host: Option<String>,
    /// `HTTP` or `HTTPS`.
    #[serde(default)]
    pub scheme: Option<String>,
    /// Headers to send.
    #[serde(default)]
    pub http_headers: Vec<HttpHeader>,
}

/// `HTTPHeader`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HttpHeader {
    /// The header's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// `TCPSocketAction`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSocketHandler {
    /// A declared port's number or name.
    pub port: Scalar,
    /// The pod unless given.
    #[serde(default)]
    pub host: Option<String>,
}

/// `SleepAction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SleepHandler {
    /// How long.
    pub seconds: u64,
}

/// `Lifecycle` of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerLifecycle {
    /// Runs right after the start; the container is not ready before it ended.
    pub post_start: Option<Handler>,
    /// Runs before SIGTERM, inside the grace period.
    pub pre_stop: Option<Handler>,
}
