//! What people say in comments: commands in the words of the program's verbs, and what of a project they mean.

use std::collections::BTreeSet;

use crate::control::commands::{Command, Refusal, RollbackCommand, SequenceCommand};
use crate::error::Failure;
use crate::manifest::rollback::{RollbackRequest, RollbackSettings};
use crate::model::ids::{CommitId, ConfigKey, ProjectName, RunId, ServiceKey, StageName};
use crate::model::object::CONFIG_WORDS;
use crate::store::ReadStore;

/// What may be said.
const USAGE: &str = "`/launchway rollback NAME [-s STAGE] [--to-version N]`, `/launchway retry NAME [-s STAGE]`, \
                     `/launchway approve NAME [-s STAGE] [--run ID]`, `/launchway reject NAME [-s STAGE] [--run ID]` or \
                     `/launchway preview COMMIT`";
/// Asks for the environment of a fork's pull request.
const PREVIEW: &str = "preview";

/// Whether a line asks for the environment of the pull request that it is on, and for which commit of it, if it says so.
///
/// # Errors
/// If it does and says something else besides.
pub(in crate::control) fn preview(line: &str) -> Result<Option<Option<CommitId>>, Failure> {
    let mut words = line.split_whitespace().skip(1);
    if words.next() != Some(PREVIEW) {
        return Ok(None);
    }
    let (named, more) = (words.next(), words.next());
    let commit = named.map(|word| {
        let wrong = || Failure::stalled(format!("`{word}` is no commit")).hint("its whole id");
        CommitId::word(word).ok_or_else(wrong)
    });
    match more {
        Some(word) => Err(Failure::stalled(format!("`{word}` is one word too many")).hint(USAGE)),
        None => commit.transpose().map(Some),
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Rollback,
    Retry,
    Approve,
    Reject,
}

/// A command as it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) struct Spoken {
    verb: Verb,
    /// A deployment config, or a service.
    name: String,
    stage: Option<StageName>,
    to_version: Option<u32>,
    /// The run that is approved or rejected.
    run: Option<RunId>,
}

impl Spoken {
    /// Reads a line, whose first word is launchway's name.
    ///
    /// # Errors
    /// If it is no command, with those that there are.
    pub(in crate::control) fn read(line: &str) -> Result<Self, Failure> {
        let wrong = |message: String| Failure::stalled(message).hint(USAGE);
        let mut words = line.split_whitespace().skip(1);
        let verb = match words.next() {
            Some("rollback") => Verb::Rollback,
            Some("retry") => Verb::Retry,
            Some("approve") => Verb::Approve,
            Some("reject") => Verb::Reject,
            Some(other) => return Err(wrong(format!("`{other}` is nothing that a comment may ask for"))),
            None => return Err(wrong("the comment does not say what is to be done".to_owned())),
        };
        let (mut name, mut stage, mut to_version, mut run) = (None, None, None, None);
        while let Some(word) = words.next() {
            let Some((option, given)) = word.starts_with('-').then(|| word.split_once('=').unwrap_or((word, "")))
            else {
                if name.replace(plain_name(word)?).is_some() {
                    return Err(wrong(format!("`{word}` is one name too many")));
                }
                continue;
            };
            let place = match option {
                "-s" | "--stage" => &mut stage,
                "--to-version" if verb == Verb::Rollback => &mut to_version,
                "--run" if matches!(verb, Verb::Approve | Verb::Reject) => &mut run,
                _ => return Err(wrong(format!("`{option}` is nothing that is known here"))),
            };
            let value = if given.is_empty() { words.next() } else { Some(given) };
            let value = value.ok_or_else(|| wrong(format!("`{option}` is without a value")))?;
            if place.replace(value).is_some() {
                return Err(wrong(format!("`{option}` is given twice")));
            }
        }
        let name = name.ok_or_else(|| wrong("the comment does not say of what".to_owned()))?;
        let number = |word: &str| word.parse().map_err(|_not_a_number| wrong(format!("`{word}` is no version")));
        let to_version = to_version.map(number).transpose()?;
        Ok(Self { verb, name, stage: stage.map(StageName::new), to_version, run: run.map(RunId::new) })
    }

    /// What it means in a project; `remark` says where it was asked for.
    pub(in crate::control) async fn meant(
        &self,
        store: &dyn ReadStore,
        project: &ProjectName,
        remark: String,
    ) -> Result<Command, Refusal> {
        match self.verb {
            Verb::Approve | Verb::Reject => {
                let (service, approve) = (self.under_way(store, project).await?, self.verb == Verb::Approve);
                Ok(Command::Sequence(SequenceCommand::Decide {
                    service,
                    approve,
                    reason: remark,
                    run: self.run.clone(),
                    asked: None,
                    revision: None,
                }))
            }
            Verb::Retry => match <[ConfigKey; 1]>::try_from(self.configs(store, project).await?) {
                Ok([config]) => Ok(Command::Retry { config }),
                Err(several) => Err(one_of(&self.name, several.iter().map(|config| config.name.clone()))),
            },
            Verb::Rollback => {
                let configs = self.configs(store, project).await?;
                if configs.len() > 1 && self.to_version.is_some() {
                    return Err(one_of(&self.name, configs.iter().map(|config| config.name.clone())));
                }
                let request = |config: &ConfigKey| {
                    let release = self.to_version.map(|version| format!("{}-{version}", config.name));
                    let settings = RollbackSettings { release, notes: remark.clone(), ..RollbackSettings::default() };
                    RollbackRequest::new(config.name.clone(), settings)
                };
                let rollbacks = configs.iter().map(request).collect();
                let (project, all, to_revision) = (project.clone(), None, None);
                let stage = configs[0].stage.clone();
                let (dry_run, pull_request) = (false, false);
                let asked = RollbackCommand { project, stage, rollbacks, all, to_revision, dry_run, pull_request };
                Ok(Command::Rollback(asked))
            }
        }
    }

    /// The deployment config of this name, else those of the service of this name: at least one, and all in one stage.
    async fn configs(&self, store: &dyn ReadStore, project: &ProjectName) -> Result<Vec<ConfigKey>, Refusal> {
        let all = store.configs(Some(project), self.stage.as_ref()).await?.whole()?;
        let all: Vec<_> = all.into_iter().map(|config| config.value).filter(|config| !config.removed).collect();
        let is_named = all.iter().any(|config| config.key.name == self.name);
        let meant = all.into_iter().filter(|config| match is_named {
            true => config.key.name == self.name,
            false => config.service.as_str() == self.name,
        });
        let meant: Vec<ConfigKey> = meant.map(|config| config.key).collect();
        let stages: BTreeSet<&StageName> = meant.iter().map(|config| &config.stage).collect();
        match stages.len() {
            0 => Err(Refusal::Unknown(self.missing("there is no deployment config or service"))),
            1 => Ok(meant),
            _ => Err(one_stage(&self.name, stages.into_iter())),
        }
    }

    /// The service of this name, else of the deployment config of this name, of which something is under way.
    async fn under_way(&self, store: &dyn ReadStore, project: &ProjectName) -> Result<ServiceKey, Refusal> {
        let slots = store.open_slots(Some(project)).await?.into_iter().map(|slot| slot.value.service);
        let open: BTreeSet<ServiceKey> =
            slots.filter(|service| self.stage.as_ref().is_none_or(|stage| stage == &service.stage)).collect();
        let is_named = |service: &&ServiceKey| service.service.as_str() == self.name;
        let mut meant: Vec<ServiceKey> = open.iter().filter(is_named).cloned().collect();
        if meant.is_empty() {
            let configs = store.configs(Some(project), self.stage.as_ref()).await?.whole()?;
            let named = configs.into_iter().map(|config| config.value).filter(|config| config.key.name == self.name);
            meant = named.map(|config| config.service_key()).filter(|service| open.contains(service)).collect();
        }
        match <[ServiceKey; 1]>::try_from(meant) {
            Ok([service]) => Ok(service),
            Err(none) if none.is_empty() => Err(Refusal::Conflict(self.missing("nothing is under way of"))),
            Err(several) => Err(one_stage(&self.name, several.iter().map(|service| &service.stage))),
        }
    }

    fn missing(&self, what: &str) -> Failure {
        let place = self.stage.as_ref().map(|stage| format!(" in stage {stage}")).unwrap_or_default();
        Failure::stalled(format!("{what} `{}`{place}", self.name))
    }
}

/// A name, perhaps with what it is the name of before it, as in `dc/web`.
fn plain_name(word: &str) -> Result<String, Failure> {
    let (kind, name) = word.split_once('/').unwrap_or((CONFIG_WORDS[0], word));
    if CONFIG_WORDS.contains(&kind) && !name.is_empty() {
        return Ok(name.to_owned());
    }
    Err(Failure::stalled(format!("`{word}` names no deployment config or service")).hint("such as `web`, or `dc/web`"))
}

fn one_of(name: &str, configs: impl Iterator<Item = String>) -> Refusal {
    let choices: Vec<String> = configs.map(|config| format!("`{config}`")).collect();
    let failure = Failure::stalled(format!("`{name}` has more than one deployment config"));
    Refusal::Invalid(failure.hint(format!("name one of {}", choices.join(", "))))
}

fn one_stage<'a>(name: &str, stages: impl Iterator<Item = &'a StageName>) -> Refusal {
    let choices: Vec<String> = stages.map(|stage| format!("`-s {stage}`")).collect();
    let failure = Failure::stalled(format!("`{name}` is meant in more than one stage"));
    Refusal::Invalid(failure.hint(format!("choose one: {}", choices.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(verb: Verb, name: &str, stage: Option<&str>, to_version: Option<u32>) -> Spoken {
        Spoken { verb, name: name.to_owned(), stage: stage.map(Into::into), to_version, run: None }
    }

    #[test]
    fn commands_are_said_as_the_programs_verbs_are() {
        for (line, expected) in [
            ("/launchway rollback web", spoken(Verb::Rollback, "web", None, None)),
            ("/launchway rollback dc/web -s prod --to-version 3", spoken(Verb::Rollback, "web", Some("prod"), Some(3))),
            (
                "/launchway rollback --to-version=3 --stage=prod web",
                spoken(Verb::Rollback, "web", Some("prod"), Some(3)),
            ),
            ("/launchway retry deploy/web", spoken(Verb::Retry, "web", None, None)),
            ("/launchway approve web --stage prod", spoken(Verb::Approve, "web", Some("prod"), None)),
            ("/launchway reject web -s=prod", spoken(Verb::Reject, "web", Some("prod"), None)),
            (
                "/launchway approve web --run 01M8",
                Spoken { run: Some("01M8".into()), ..spoken(Verb::Approve, "web", None, None) },
            ),
        ] {
            assert_eq!(Spoken::read(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn an_environment_is_asked_for_at_what_is_there_or_at_a_commit() {
        for (line, expected) in [
            ("/launchway preview", Ok(Some(None))),
            ("/launchway preview 1A2B3c4", Ok(Some(CommitId::word("1a2b3c4")))),
            ("/launchway retry preview", Ok(None)),
            ("/launchway", Ok(None)),
            ("/launchway preview now", Err("`now` is no commit")),
            ("/launchway preview 1a2b -s dev", Err("`-s` is one word too many")),
        ] {
            let read = preview(line).map_err(|failure| failure.to_string());
            assert_eq!(read, expected.map_err(str::to_owned), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_one_is_said() {
        for (line, why) in [
            ("/launchway", "the comment does not say what is to be done"),
            ("/launchway please", "`please` is nothing that a comment may ask for"),
            ("/launchway Rollback web", "`Rollback` is nothing that a comment may ask for"),
            ("/launchway down web", "`down` is nothing that a comment may ask for"),
            ("/launchway retry", "the comment does not say of what"),
            ("/launchway retry -s prod", "the comment does not say of what"),
            ("/launchway retry web api", "`api` is one name too many"),
            ("/launchway retry web -s", "`-s` is without a value"),
            ("/launchway retry web --stage=", "`--stage` is without a value"),
            ("/launchway retry web -s a -s b", "`-s` is given twice"),
            ("/launchway retry web --force", "`--force` is nothing that is known here"),
            ("/launchway retry web --force yes", "`--force` is nothing that is known here"),
            ("/launchway retry web --to-version 3", "`--to-version` is nothing that is known here"),
            ("/launchway rollback web --to-version x", "`x` is no version"),
            ("/launchway rollback web --to-version -1", "`-1` is no version"),
            ("/launchway rollback web --to-version 99999999999", "`99999999999` is no version"),
            ("/launchway rollback run/web", "`run/web` names no deployment config or service"),
            ("/launchway rollback dc/", "`dc/` names no deployment config or service"),
        ] {
            let failure = Spoken::read(line).unwrap_err();
            assert_eq!(failure.to_string(), why, "{line}");
            assert!(failure.hint_text().is_some_and(|hint| !hint.is_empty()), "{line}");
        }
    }
}
