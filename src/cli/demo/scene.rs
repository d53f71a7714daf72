//! Where the story plays, and how it is observed: over HTTP, with `git`, through the API, in files that hooks wrote.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::example;
use super::git::{Git, Program};
use super::server::{REPOSITORY, Server};
use super::story::{Observed, check, eventually};
use super::visitors::{self, About};
use crate::cli::output::Outcome;
use crate::error::{Context as _, Failure, Result};
use crate::server::view::{ConfigView, List, PodView, RevisionView, RunView, ServiceView};

/// The stages, in the order in which a push travels.
pub(super) const STAGES: [&str; 2] = ["dev", "production"];
/// How long a push may take to its end, on a machine that is busy.
pub(super) const DELIVERY: Duration = Duration::from_secs(120);
/// How long anything else may take to be seen.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A folder with a repository, and a daemon that watches it.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) git: Git,
    pub(super) server: Server,
}

impl Scene {
    /// Makes the repository and the configuration in `folder`; nothing runs yet.
    ///
    /// # Errors
    /// If the folder cannot be written, or there is no `git`.
    pub(super) async fn prepare(folder: &Path) -> Result<Self> {
        let (program, bare) = (Program::at_home(folder)?, folder.join("shop.git"));
        program.init(&bare).await?;
        let git = program.begin(&bare.display().to_string(), REPOSITORY).await?;
        example::write_to(git.work(), &[""])?;
        let server = Server::prepare(folder, git.origin())?;
        Ok(Self { git, server })
    }

    async fn api<T: DeserializeOwned>(&self, path: &str, parameters: &[(&str, Option<&str>)]) -> Observed<T> {
        let client = self.server.api().await.map_err(|complaint| complaint.failure.one_line())?;
        client.get(path, parameters).await.map_err(|complaint| complaint.failure.one_line())
    }

    /// Waits until nothing more will happen to a commit; says how it ended.
    pub(super) async fn settled(&self, commit: &str) -> Observed {
        let path = format!("revisions/{REPOSITORY}/{commit}");
        eventually(DELIVERY, async || {
            let revision: RevisionView = self.api(&path, &[]).await?;
            let words: Vec<_> =
                revision.statuses.iter().map(|status| format!("{} {}", status.state, status.context)).collect();
            check(revision.is_settled(), words.join(", "), format!("not at its end: {}", words.join(", ")))
        })
        .await
    }

    /// The deployment configs of all stages.
    pub(super) async fn deployments(&self) -> Observed<Vec<ConfigView>> {
        self.api("deployments", &[]).await.map(|list: List<_>| list.items)
    }

    /// The pods of all stages.
    pub(super) async fn pods(&self) -> Observed<Vec<PodView>> {
        self.api("pods", &[]).await.map(|list: List<_>| list.items)
    }

    /// The sequence runs on a commit.
    pub(super) async fn sequences(&self, commit: &str) -> Observed<Vec<RunView>> {
        let parameters = [("commit", Some(commit)), ("kind", Some("sequence"))];
        self.api("runs", &parameters).await.map(|list: List<_>| list.items)
    }

    /// That each of these configs serves this version in its stage.
    pub(super) async fn serves(&self, expected: &[(&str, &str, u32)]) -> Observed {
        let configs = self.deployments().await?;
        let told = |config: &ConfigView| {
            let version =
                config.serving.as_ref().map_or_else(|| "nothing".to_owned(), |found| found.version.to_string());
            format!("{}/{} {version}", config.stage, config.name)
        };
        let serving: Vec<String> = configs.iter().map(told).collect();
        let wanted =
            |(stage, name, version): &(&str, &str, u32)| serving.contains(&format!("{stage}/{name} {version}"));
        check(expected.iter().all(wanted), serving.join(", "), serving.join(", "))
    }

    /// The address of a service.
    pub(super) async fn address(&self, stage: &str, service: &str) -> Observed<SocketAddr> {
        let parameters = [("stage", Some(stage)), ("name", Some(service))];
        let list: List<ServiceView> = self.api("services", &parameters).await?;
        let found = list.items.first().ok_or_else(|| format!("there is no service `{service}` in {stage}"))?;
        let address: IpAddr = found.address.parse().map_err(|error| format!("{}: {error}", found.address))?;
        let port = found.ports.first().ok_or_else(|| format!("`{service}` has no port"))?;
        Ok(SocketAddr::new(address, *port))
    }

    /// The addresses of a service in all stages.
    pub(super) async fn addresses(&self, service: &str) -> Observed<Vec<(&'static str, SocketAddr)>> {
        let mut addresses = Vec::new();
        for stage in STAGES {
            addresses.push((stage, self.address(stage, service).await?));
        }
        Ok(addresses)
    }

    /// What a service answers.
    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        stage: &str,
        service: &str,
        path: &str,
    ) -> Observed<(String, T)> {
        let url = format!("http://{}{path}", self.address(stage, service).await?);
        let body = visitors::get(&url).await?;
        let value = serde_json::from_slice(&body).map_err(|error| format!("{url}: {error}"))?;
        Ok((url, value))
    }

    /// That a service answers with this version of its code in every stage.
    pub(super) async fn answers(&self, service: &str, version: &str) -> Observed {
        let mut answers = Vec::new();
        for stage in STAGES {
            let (url, about): (_, About) = self.ask(stage, service, "/version").await?;
            let answer = format!("{url} in {stage}: version {}", about.version);
            if about.version != version {
                return Err(answer);
            }
            answers.push(answer);
        }
        Ok(answers.join("; "))
    }

    /// That a commit's notes in the watched repository hold these lines, each known by its beginning and a part of it.
    pub(super) async fn noted(&self, commit: &str, expected: &[(&str, &str)]) -> Observed {
        eventually(SOON, async || {
            let notes = self.git.notes(commit).await.map_err(|failure| failure.one_line())?;
            let find = |(start, part): &(&str, &str)| {
                let found = notes.lines().find(|line| line.starts_with(start) && line.contains(part));
                found
                    .map(str::to_owned)
                    .ok_or_else(|| format!("no line `{start} … {part}` in: {}", notes.replace('\n', "; ")))
            };
            Ok(expected.iter().map(find).collect::<Observed<Vec<_>>>()?.join("\n    "))
        })
        .await
    }

    /// The points at which hooks of a claim's service ran on a commit, as they wrote it down themselves.
    pub(super) fn hooks(&self, stage: &str, claim: &str, commit: &str) -> Observed {
        let path = self.hooks_file(stage, claim);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let points = text.lines().filter(|line| line.ends_with(commit)).filter_map(|line| line.split(' ').next());
        Ok(points.collect::<Vec<_>>().join(" "))
    }

    fn hooks_file(&self, stage: &str, claim: &str) -> PathBuf {
        self.server.state().join("local/volumes").join(format!("{REPOSITORY}-{stage}")).join(claim).join("hooks.log")
    }

    /// That hooks wrote down exactly these points on a commit, in this order.
    pub(super) fn hooks_ran(&self, commit: &str, expected: &[(&str, &str, &str)]) -> Observed {
        let mut seen = Vec::new();
        for (stage, claim, points) in expected {
            let found = self.hooks(stage, claim, commit)?;
            seen.push(format!("{stage}/{claim}/hooks.log: {found}"));
            if found != *points {
                return Err(seen.join("; "));
            }
        }
        Ok(seen.join("; "))
    }

    /// Runs a verb of this program on the story's state; gives what it prints.
    ///
    /// # Errors
    /// If it cannot be run, or fails.
    pub(super) async fn launchway(&self, arguments: &[&str]) -> Outcome<String> {
        let output = self.server.launchway(arguments).output().await;
        let output = output.or_transient(|| format!("cannot run `launchway {}`", arguments.join(" ")))?;
        if !output.status.success() {
            let complaint = String::from_utf8_lossy(&output.stderr);
            return Err(
                Failure::stalled(format!("`launchway {}` fails: {}", arguments.join(" "), complaint.trim())).into()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
