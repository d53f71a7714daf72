//! Which revision of code a revision of configuration deploys, where the two live in different repositories: its commit gets the
//! statuses too.

use std::collections::BTreeSet;

use crate::model::commit_status::CommitStatus;
use crate::model::ids::{CommitId, ServiceName};
use crate::model::object::{CODE_POINTER, Kind, Object};
use crate::model::project::Project;
use crate::model::trailer::trailers;
use crate::report::status::PLAN;

/// Says of all that a commit deploys what the annotation says of a deployment config.
const TRAILER: &str = "launchway-code";
/// The same, as Argo CD's source hydrator writes it: the commit, and the address of its repository.
const HYDRATED: [&str; 2] = ["argocd-reference-commit-sha", "argocd-reference-commit-repourl"];

/// A repository of code, as the daemon's configuration names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRepository {
    /// Its name.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Whether there is no other one that could be meant.
    pub is_only: bool,
}

/// A revision of code that a revision of configuration deploys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeRevision {
    /// The code.
    pub commit: CommitId,
    /// The service that is made of it; all of them, unless one is named.
    pub service: Option<ServiceName>,
}

/// The revisions of a repository of code that a revision of configuration names: in its message's trailers, in annotations of deployment
/// configs, or by tags of their images that end with a whole commit id, as pipelines write them.
pub fn revisions(repository: &CodeRepository, message: &str, project: Option<&Project>) -> BTreeSet<CodeRevision> {
    let stages = project.into_iter().flat_map(|project| &project.stages);
    let configs =
        stages.flat_map(|stage| stage.objects.iter()).filter(|object| object.key.kind == Kind::DeploymentConfig);
    let of_services = configs.filter_map(|config| {
        let commit = of_config(repository, config)?;
        Some(CodeRevision { commit, service: Some(config.service.clone()) })
    });
    let of_all = of_message(repository, message).map(|commit| CodeRevision { commit, service: None });
    of_all.into_iter().chain(of_services).collect()
}

fn of_message(repository: &CodeRepository, message: &str) -> Option<CommitId> {
    let values = |name: &'static str| {
        let is_it = move |(key, _): &(&str, &str)| key.eq_ignore_ascii_case(name);
        trailers(message).filter(is_it).map(|(_, value)| value)
    };
    let own = values(TRAILER).find_map(|value| named(repository, value));
    let [commit, url] = HYDRATED.map(|name| values(name).next());
    let is_its = url.map_or(repository.is_only, |url| bare(url) == bare(&repository.url));
    own.or_else(|| commit.filter(|_| is_its).and_then(CommitId::whole))
}

fn of_config(repository: &CodeRepository, config: &Object) -> Option<CommitId> {
    if let Some(annotation) = config.content.at(CODE_POINTER) {
        return named(repository, annotation.as_str()?);
    }
    let containers = config.content.at("/spec/template/spec/containers").filter(|_| repository.is_only)?;
    let images = containers.as_array()?.iter().filter_map(|container| container.get("image")?.as_str());
    images.filter_map(of_image).next()
}

/// `<name>@<commit>`, or the commit alone.
fn named(repository: &CodeRepository, text: &str) -> Option<CommitId> {
    match text.trim().split_once('@') {
        Some((name, commit)) => CommitId::whole(commit).filter(|_| name == repository.name),
        None => CommitId::whole(text.trim()).filter(|_| repository.is_only),
    }
}

/// The commit at the end of an image's tag. What names a folder of the repository itself has an id of another kind.
fn of_image(image: &str) -> Option<CommitId> {
    let image = image.split('@').next().filter(|_| !image.starts_with("git:"))?;
    let (_, tag) = image.rsplit_once(':')?;
    tag.rsplit(['-', '_', '.']).next().and_then(CommitId::whole)
}

/// An address without what does not tell repositories apart.
fn bare(url: &str) -> &str {
    url.trim().trim_end_matches('/').trim_end_matches(".git")
}

/// A status of a revision of configuration as it stands on the revisions of code that it deploys. What a plan says is about files of the
/// configuration.
pub fn on_code(status: &CommitStatus, revisions: &BTreeSet<CodeRevision>) -> Vec<CommitStatus> {
    if status.context == PLAN {
        return Vec::new();
    }
    let service = status.context.split('/').nth(2);
    let is_about = |revision: &&CodeRevision| revision.service.as_ref().is_none_or(|it| Some(it.as_str()) == service);
    let commits: BTreeSet<&CommitId> = revisions.iter().filter(is_about).map(|revision| &revision.commit).collect();
    commits.into_iter().map(|commit| CommitStatus { commit: commit.clone(), ..status.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::digest;
    use crate::model::commit_status::StatusState;
    use crate::model::object::CODE;
    use crate::model::shipyard::Shipyard;
    use crate::testing::world::{deployment_config, project};

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn app(is_only: bool) -> CodeRepository {
        CodeRepository { name: "app".into(), url: "https://git.example/shop/app.git".into(), is_only }
    }

    /// What is named, each with the service if there is one.
    fn told(repository: &CodeRepository, message: &str, configs: &[Object]) -> String {
        let project = project(Shipyard::implicit(), configs);
        let told = revisions(repository, message, Some(&project)).into_iter().map(|revision| {
            let service = revision.service.map(|service| format!("{service}=")).unwrap_or_default();
            format!("{service}{}", &revision.commit.as_str()[..1])
        });
        told.collect::<Vec<_>>().join(" ")
    }

    fn annotated(name: &str, value: &str) -> Object {
        let mut object = deployment_config(name, "a", 1, json!({}));
        let mut content = object.content.value();
        content["metadata"]["annotations"][CODE] = json!(value);
        digest::exchange(&mut object, content);
        object
    }

    #[test]
    fn a_commit_names_the_code_of_all_that_it_deploys() {
        for (message, of_only, of_several) in [
            (format!("Go\n\nLaunchway-Code: {ONE}"), "1", ""),
            (format!("Go\n\nlaunchway-code: app@{ONE}"), "1", "1"),
            (format!("Go\n\nLaunchway-Code: other@{ONE}\nLaunchway-Code: app@{TWO}"), "2", "2"),
            (format!("Go\n\nLaunchway-Code: {}", &ONE[..12]), "", ""),
            (format!("Go\n\nArgocd-reference-commit-sha: {ONE}"), "1", ""),
            (
                format!(
                    "Go\n\nArgocd-reference-commit-sha: {ONE}\nArgocd-reference-commit-repourl: https://git.example/shop/app"
                ),
                "1",
                "1",
            ),
            (
                format!(
                    "Go\n\nArgocd-reference-commit-sha: {ONE}\nArgocd-reference-commit-repourl: https://git.example/shop/web"
                ),
                "",
                "",
            ),
            ("Go\n\nLaunchway-Code: app@../../etc".to_owned(), "", ""),
            (format!("Launchway-Code: {ONE}"), "", ""),
        ] {
            assert_eq!(told(&app(true), &message, &[]), of_only, "{message}");
            assert_eq!(told(&app(false), &message, &[]), of_several, "{message}");
        }
    }

    #[test]
    fn a_deployment_config_names_the_code_of_its_service() {
        let tagged = |tag: &str| deployment_config("web", &format!("registry.example:5000/app:{tag}"), 1, json!({}));
        for (config, of_only, of_several) in [
            (annotated("web", ONE), "web=1", ""),
            (annotated("web", &format!("app@{ONE}")), "web=1", "web=1"),
            (annotated("web", &format!("other@{ONE}")), "", ""),
            (tagged(ONE), "web=1", ""),
            (tagged(&format!("main-{ONE}")), "web=1", ""),
            (tagged(&format!("{ONE}@sha256:{}", "0".repeat(64))), "web=1", ""),
            (tagged("1.2.3"), "", ""),
            (deployment_config("web", &format!("git:web@{ONE}"), 1, json!({})), "", ""),
        ] {
            assert_eq!(told(&app(true), "Go", std::slice::from_ref(&config)), of_only, "{config:?}");
            assert_eq!(told(&app(false), "Go", std::slice::from_ref(&config)), of_several, "{config:?}");
        }
        let both = [annotated("api", TWO), annotated("web", ONE)];
        assert_eq!(told(&app(true), &format!("Go\n\nLaunchway-Code: {ONE}"), &both), "1 web=1 api=2");
    }

    #[test]
    fn statuses_stand_on_the_code_that_they_are_about() {
        let of = |service: Option<&str>, commit: &str| CodeRevision {
            commit: commit.into(),
            service: service.map(Into::into),
        };
        let written = |context: &str, revisions: &[CodeRevision]| {
            let status = CommitStatus::new("c1".into(), context, StatusState::Success, "");
            let written = on_code(&status, &revisions.iter().cloned().collect());
            assert!(written.iter().all(|it| it.context == context && it.state == StatusState::Success));
            written.into_iter().map(|it| it.commit.as_str()[..1].to_owned()).collect::<Vec<_>>().join(" ")
        };
        let all = [of(None, ONE)];
        let each = [of(Some("web"), ONE), of(Some("api"), TWO)];
        let twice = [of(None, ONE), of(Some("web"), ONE)];
        for (context, of_all, of_each) in [
            ("launchway/plan", "", ""),
            ("launchway/dev", "1", ""),
            ("launchway/dev/web", "1", "1"),
            ("launchway/dev/api/post", "1", "2"),
            ("launchway/dev/other", "1", ""),
        ] {
            assert_eq!(written(context, &all), of_all, "{context}");
            assert_eq!(written(context, &each), of_each, "{context}");
            assert_eq!(written(context, &twice), of_all, "{context}, once");
        }
    }
}
