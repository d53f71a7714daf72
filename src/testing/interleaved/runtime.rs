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
use crate::testing::interleaved::fault::{self, Fault, Made};
use crate::testing::interleaved::scheduler::turn;

/// A runtime whose callers take turns, and which may make a mistake.
#[derive(Debug)]
pub(super) struct SharedRuntime(pub(super) PretendedRuntime, pub(super) Made);

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
        if self.1.is(Fault::KeepsPods) && set.replicas < living {
            return Ok(None);
        }
        let again = self.0.scale(set, living, objects).await?;
        if self.1.is(Fault::EndsOneMore) {
            fault::end_one_more(&self.0, set).await?;
        }
        Ok(again)
    }

    async fn start_pod(&self, pod: &Pod, objects: &Objects) -> Result<()> {
        turn().await;
        if self.1.is(Fault::StartsAgain) {
            fault::forget_ended(&self.0, pod).await?;
        }
        self.0.start_pod(pod, objects).await
    }

    async fn adopt(&self, pod: &PodId, version: u32) -> Result<()> {
        turn().await;
        self.0.adopt(pod, version).await
    }

    async fn stop_pod(&self, pod: &PodId) -> Result<()> {
        turn().await;
        match self.1.is(Fault::KeepsPods) {
            true => Ok(()),
            false => self.0.stop_pod(pod).await,
        }
    }

    async fn remove_pod(&self, pod: &ObservedPod) -> Result<()> {
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
        let address = self.0.apply_service(service).await?;
        if self.1.is(Fault::LosesServices) {
            self.0.remove_service(&service.namespace, &service.name).await?;
        }
        Ok(address)
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
        match self.1.is(Fault::TellsNothing) {
            true => self.1.silence(),
            false => self.0.changes(),
        }
    }

    async fn collect_garbage(&self, keep: &[ImageUse], dry_run: bool) -> Result<u64> {
        self.0.collect_garbage(keep, dry_run).await
    }
}
