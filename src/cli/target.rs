//! What a verb is about: `dc/web`, `run/01J…`, `revision/1a2b3c4`.

use super::arguments::Global;
use super::client::Client;
use super::here;
use super::output::{Complaint, Exit, Outcome};
use crate::error::Failure;
use crate::model::ids::RepositoryName;
use crate::model::object::CONFIG_WORDS;
use crate::server::view::{ConfigView, DamagedView, List, RepositoryView};

/// A name with what it is the name of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A deployment config.
    Config(String),
    /// A run.
    Run(String),
    /// A revision, by a commit id or its first digits.
    Revision(String),
    /// A pod.
    Pod(String),
    /// An image stream.
    ImageStream(String),
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').unwrap_or((CONFIG_WORDS[0], text));
        if name.is_empty() {
            return Err("a name is missing, as in `dc/web`".to_owned());
        }
        let name = name.to_owned();
        match kind {
            config if CONFIG_WORDS.contains(&config) => Ok(Self::Config(name)),
            "run" | "runs" => Ok(Self::Run(name)),
            "revision" | "revisions" | "commit" => Ok(Self::Revision(name)),
            "pod" | "pods" => Ok(Self::Pod(name)),
            "is" | "imagestream" | "imagestreams" => Ok(Self::ImageStream(name)),
            _ => Err(format!("`{kind}` is nothing that has a name here; use dc, deploy, run, revision, is or pod")),
        }
    }
}

/// The name of a deployment config, as `dc/web` or `web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConfigName(pub(super) String);

impl std::str::FromStr for ConfigName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse()? {
            Target::Config(name) => Ok(Self(name)),
            _ => Err(format!("expected deployment configuration, got `{text}`")),
        }
    }
}

impl ConfigName {
    /// The one deployment config of that name that the user can mean.
    pub(super) async fn find(&self, client: &Client, global: &Global) -> Outcome<ConfigView> {
        let chosen = chosen(client, global.repository.as_deref()).await?;
        let found = applied(&self.0, client, global, &chosen).await?;
        only(found, &format!("deployment config `{}`{}", self.0, among(&chosen)), place)
    }
}

/// The deployment configs of a name that are applied in the chosen repositories.
pub(super) async fn applied(
    name: &str,
    client: &Client,
    global: &Global,
    chosen: &[RepositoryView],
) -> Outcome<Vec<ConfigView>> {
    let parameters = [("name", Some(name)), ("stage", global.stage.as_deref())];
    let mut found: List<ConfigView> = client.get("deployments", &parameters).await?;
    let may_be_meant = |damaged: &&DamagedView| damaged.name.ends_with(&format!("/{name}"));
    if let Some(damaged) = found.damaged.iter().find(may_be_meant) {
        return Err(Complaint::failed(Failure::stalled(damaged.problem.clone())));
    }
    found.items.retain(|config| may_be_of(chosen, &config.repository));
    Ok(if global.stage.is_some() { found.items } else { without_environments(found.items) })
}

/// What people mean who say no stage: not what is in environments of pull requests, unless nothing else is. Whoever opens one must
/// not make the commands of others ambiguous.
fn without_environments(mut found: Vec<ConfigView>) -> Vec<ConfigView> {
    let is_branchs = |config: &ConfigView| RepositoryName::new(&*config.repository).pull().is_none();
    if found.iter().any(is_branchs) {
        found.retain(is_branchs);
    }
    found
}

/// What was sought under a name; where nothing has it and it is a version's, as OpenShift names its replication controllers, with
/// the command that says the same of the deployment config.
pub(super) async fn or_its_version<T>(
    found: Outcome<T>,
    name: &str,
    client: &Client,
    global: &Global,
    command: impl Fn(&str, u32) -> String,
) -> Outcome<T> {
    let (complaint, config, version) = match (found, numbered(name)) {
        (Err(complaint), Some((config, version))) if complaint.exit == Exit::Failed => (complaint, config, version),
        (found, _) => return found,
    };
    match ConfigName(config.to_owned()).find(client, global).await {
        Ok(config) if (1..=config.latest_version).contains(&version) => {
            let (target, stage) = (config.target(), &config.stage);
            let hint = format!(
                "`{name}` is version {version} of {target}: `launchway {} -s {stage}`",
                command(&target, version)
            );
            Err(Complaint { failure: complaint.failure.hint(hint), ..complaint })
        }
        _ => Err(complaint),
    }
}

/// A name and the number at its end.
fn numbered(name: &str) -> Option<(&str, u32)> {
    let (config, number) = name.rsplit_once('-')?;
    Some((config, number.parse().ok()?)).filter(|(config, _)| !config.is_empty())
}

/// How a deployment config is chosen among several of its name.
pub(super) fn place(config: &ConfigView) -> String {
    format!("-r {} -s {}", config.repository, config.stage)
}

/// Where a deployment config is in the API.
pub(super) fn config_path(config: &ConfigView) -> String {
    format!("deployments/{}/{}/{}", config.project, config.stage, config.name)
}

/// The repositories that a verb is about: the one that the user names, else those that the work tree here belongs to.
/// None of them where nobody chose: then it may be about any.
pub(super) async fn chosen(client: &Client, name: Option<&str>) -> Outcome<Vec<RepositoryView>> {
    match name {
        Some(name) => Ok(vec![named(client, name).await?]),
        None => Ok(owned_here(watched(client).await?).0),
    }
}

/// The same where it is about one alone, or about all of them where nobody chose.
pub(super) async fn chosen_one(client: &Client, name: Option<&str>) -> Outcome<Option<RepositoryView>> {
    match chosen(client, name).await? {
        none if none.is_empty() => Ok(None),
        some => only_repository(some).map(Some),
    }
}

/// The repository that the user names, or the only one that the work tree here belongs to, or the only one.
pub(super) async fn repository(client: &Client, name: Option<&str>) -> Outcome<RepositoryView> {
    if let Some(name) = name {
        return named(client, name).await;
    }
    let (owned, others) = owned_here(watched(client).await?);
    only_repository(if owned.is_empty() { others } else { owned })
}

async fn named(client: &Client, name: &str) -> Outcome<RepositoryView> {
    client.get(&format!("repositories/{name}"), &[]).await
}

pub(super) async fn watched(client: &Client) -> Outcome<Vec<RepositoryView>> {
    Ok(client.get::<List<RepositoryView>>("repositories", &[]).await?.items)
}

/// Of several repositories those that the work tree here belongs to, and the others.
fn owned_here(watched: Vec<RepositoryView>) -> (Vec<RepositoryView>, Vec<RepositoryView>) {
    match here::repository().filter(|_| watched.len() > 1) {
        Some(here) => here::owned(&here, watched),
        None => (Vec::new(), watched),
    }
}

pub(super) fn only_repository(found: Vec<RepositoryView>) -> Outcome<RepositoryView> {
    only(found, "repository", |repository| format!("-r {}", repository.name))
}

/// Whether something of a repository may be meant.
pub(super) fn may_be_of(chosen: &[RepositoryView], repository: &str) -> bool {
    let repository = RepositoryName::new(repository);
    let watched = repository.watched(); // what is in the environment of a pull request is of that, too
    let is_meant = |name: &str| [&repository, &watched].iter().any(|meant| meant.as_str() == name);
    chosen.is_empty() || chosen.iter().any(|chosen| is_meant(&chosen.name))
}

/// Where something was searched for, for people.
pub(super) fn among(chosen: &[RepositoryView]) -> String {
    let names: Vec<String> = chosen.iter().map(|repository| format!("`{}`", repository.name)).collect();
    if names.is_empty() { String::new() } else { format!(" in {}", names.join(" or ")) }
}

/// The only one; where there are several, an error that says how to choose.
pub(super) fn only<T>(mut found: Vec<T>, what: &str, choice: impl Fn(&T) -> String) -> Outcome<T> {
    if found.len() > 1 {
        let choices = found.iter().map(choice).collect::<Vec<_>>().join("\n  ");
        let failure = Failure::stalled(format!("there is more than one {what}"));
        return Err(Complaint::usage(failure.hint(format!("choose one:\n  {choices}"))));
    }
    found.pop().ok_or_else(|| Complaint::failed(Failure::stalled(format!("there is no {what}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_a_deployment_config() {
        for (text, target) in [
            ("web", Some(Target::Config("web".into()))),
            ("dc/web", Some(Target::Config("web".into()))),
            ("deploymentconfig/web", Some(Target::Config("web".into()))),
            ("deploy/web", Some(Target::Config("web".into()))),
            ("deployment.apps/web", Some(Target::Config("web".into()))),
            ("run/shop/dev/web-1", Some(Target::Run("shop/dev/web-1".into()))),
            ("commit/1a2b", Some(Target::Revision("1a2b".into()))),
            ("dc/", None),
            ("rc/east", Some(Target::Config("east".into()))),
            ("rs/web-1", None),
        ] {
            assert_eq!(text.parse().ok(), target, "{text}");
        }
        assert!("run/x".parse::<ConfigName>().is_err());
    }

    #[test]
    fn the_name_of_a_version_ends_in_its_number() {
        for (name, expected) in [
            ("web-7", Some(("web", 7))),
            ("shop-web-12", Some(("shop-web", 12))),
            ("web", None),
            ("web-x", None),
            ("-7", None),
        ] {
            assert_eq!(numbered(name), expected, "{name}");
        }
    }

    #[test]
    fn one_of_many_must_be_chosen() {
        let choice = |name: &&str| format!("-s {name}");
        assert_eq!(only(vec!["dev"], "stage", choice).ok(), Some("dev"));
        let many = only(vec!["dev", "production"], "stage", choice).expect_err("ambiguous");
        assert_eq!(many.exit, Exit::Usage);
        assert!(many.failure.hint_text().is_some_and(|hint| hint.contains("-s dev\n  -s production")));
        assert_eq!(only(Vec::new(), "stage", choice).expect_err("none").exit, Exit::Failed);
    }
}
