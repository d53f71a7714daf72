//! A runtime at which the turn is given away before every call.

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::error::Result;
use crate::model::ids::Namespace;
use crate::model::pod::{ObservedPod, Pod, PodId, PodResult, ReplicaSet};
use crate::model::time::Timestamp;
use crate::runtime::exec::{ExecCommand, ExecSession};
use crate::runtime::logs::{LogQuery, LogStream};
use crate::runtime::{ImageUse, Objects, Runtime, RuntimeChange, ServiceAddress, ServiceSpec};
use crate::simulation::runtime::PretendedRuntime;
use crate::testing::interleaved::scheduler::turn;

/// A runtime whose callers take turns.
#[derive(Debug)]
pub(super) struct SharedRuntime(pub(super) PretendedRuntime);

#[async_trait]
impl Runtime for SharedRuntime {
    async fn prepare(&self, pod: &Pod) -> Result<()> {
        turn().await;
        self.0.prepare(pod).await
    }

    async fn forget_failures(&self, pod: &Pod) -> Result<()> {
        turn().await;
        self.0.forget_failures(pod).await
    }

    async fn scale(&self, set: &ReplicaSet, living: u32, objects: &Objects) -> Result<Option<Timestamp>> {
        turn().await;
        self.0.scale(set, living, objects).await
    }

    async fn start_pod(&self, pod: &Pod, objects: &Objects) -> Result<()> {
        turn().await;
        self.0.start_pod(pod, objects).await
    }

    async fn adopt(&self, pod: &PodId, version: u32) -> Result<()> {
        turn().await;
        self.0.adopt(pod, version).await
    }

    async fn stop_pod(&self, pod: &PodId) -> Result<()> {
        turn().await;
        self.0.stop_pod(pod).await
    }

    async fn remove_pod(&self, pod: &PodId) -> Result<()> {
        turn().await;
        self.0.remove_pod(pod).await
    }

    async fn result(&self, pod: &PodId) -> Result<Option<PodResult>> {
        turn().await;
        self.0.result(pod).await
    }

    async fn observe(&self, namespace: &Namespace) -> Result<Vec<ObservedPod>> {
        turn().await;
        self.0.observe(namespace).await
    }

    async fn namespaces(&self) -> Result<Vec<Namespace>> {
        turn().await;
        self.0.namespaces().await
    }

    async fn apply_service(&self, service: &ServiceSpec) -> Result<ServiceAddress> {
        turn().await;
        self.0.apply_service(service).await
    }

    async fn service_spec(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceSpec>> {
        turn().await;
        self.0.service_spec(namespace, name).await
    }

    async fn remove_service(&self, namespace: &Namespace, name: &str) -> Result<()> {
        turn().await;
        self.0.remove_service(namespace, name).await
    }

    async fn service(&self, namespace: &Namespace, name: &str) -> Result<Option<ServiceAddress>> {
        turn().await;
        self.0.service(namespace, name).await
    }

    async fn services(&self, namespace: &Namespace) -> Result<Vec<ServiceAddress>> {
        turn().await;
        Runtime::services(&self.0, namespace).await
    }

    async fn logs(&self, pod: &PodId, query: &LogQuery) -> Result<LogStream> {
        self.0.logs(pod, query).await
    }

    async fn exec(&self, pod: &PodId, container: Option<&str>, command: &ExecCommand) -> Result<ExecSession> {
        self.0.exec(pod, container, command).await
    }

    fn changes(&self) -> broadcast::Receiver<RuntimeChange> {
        self.0.changes()
    }

    async fn collect_garbage(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64> {
        self.0.collect_garbage(keep, dry_run).await
    }
}
