//! Does what people ask for in comments on pull requests: those who may write to the repository, as its host itself tells; by the
//! commands that everybody has, once, and with an answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;

use crate::control::commands::operator::{Operator, conflict};
use crate::control::commands::spoken::{Spoken, preview};
use crate::control::commands::{Command, Commands, Done, Refusal};
use crate::control::watcher::{Host, Watcher};
use crate::engine::environments;
use crate::engine::records::Lookup;
use crate::engine::transition::Transition;
use crate::error::{Class, Failure, Result};
use crate::executor::comments::Comments;
use crate::forge::webhook;
use crate::model::action::Action;
use crate::model::comment::{Comment, CommentCommand};
use crate::model::ids::{CommitId, RepositoryName};
use crate::model::transaction::{KEPT_BY_AGE, Write};
use crate::report::answer::{answer, marker};

/// How many commands of a comment are carried out.
const MOST: usize = 5;
/// What was asked for longer ago is not begun any more: people have done something else since. Whether a comment was taken is
/// remembered for longer.
const LATE: Duration = Duration::from_secs(3600);
/// How long a host may take to say what somebody may do: those that call wait for an answer, Gitea for 5 seconds.
const PATIENCE: Duration = Duration::from_secs(4);
/// How many people are asked about at once: anybody may comment.
const QUESTIONS: usize = 8;
/// The answer where the daemon ended between what was done and what was to be said of it.
const DONE: &str = "carried out; the daemon ended before it could say more: `launchway history` tells what came of it";

/// Does what people ask for in comments on the pull requests of watched repositories.
#[derive(Clone, Debug)]
pub struct WatchedComments {
    operator: Operator,
    questions: Arc<Semaphore>,
}

impl WatchedComments {
    /// What is asked for is done by `operator`.
    pub fn new(operator: Operator) -> Self {
        Self { operator, questions: Arc::new(Semaphore::new(QUESTIONS)) }
    }

    /// Takes what a comment asks for, of which a host has told; says whether it is new. It is durable then.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn take(&self, repository: &RepositoryName, from: webhook::Host, comment: Comment) -> Result<bool> {
        let watcher = self.watcher(repository).ok_or_else(|| Failure::stalled("comments command nothing here"))?;
        let Some(host) = &watcher.host else {
            let nobody = Failure::stalled("without a token nobody can be asked what the author of the comment may do");
            return Err(nobody.hint("give `credentials: {tokenFile: …}`"));
        };
        refuse_foreign(host, from, "comment", &comment.repository)?;
        if self.operator.driver.clock.now().since(comment.at) > LATE {
            return Err(Failure::stalled("the comment is more than an hour old"));
        }
        let once = format!("{KEPT_BY_AGE}comment {}", comment.id);
        if self.operator.driver.store.was_delivered(repository, &once).await? {
            return Ok(false);
        }
        let may_write = async {
            let _turn = self.questions.acquire().await;
            host.pull_requests.may_write(&comment.author).await
        };
        let slow = |_| Failure::transient("the host does not say in time what the author of the comment may do");
        if !tokio::time::timeout(PATIENCE, may_write).await.map_err(slow)?? {
            let login = &comment.author.login;
            return Err(Failure::stalled(format!(
                "`{login}` may not write to the repository, so that nothing is done"
            )));
        }
        let commands = commands(from, &comment);
        let asked = |transition: &mut Transition<'_>| {
            if transition.records.number(Lookup::WasDelivered(repository.clone(), once.clone()))? > 0 {
                return Ok(false);
            }
            let (repository_name, id, at) = (repository.clone(), once.clone(), transition.now);
            transition.write(Write::Delivery { repository: repository_name, id, at });
            for command in &commands {
                transition.ask(&Action::comments_of(repository), Action::comment(repository, command.clone()));
            }
            Ok(true)
        };
        self.operator.driver.decide(asked).await
    }

    fn watcher(&self, repository: &RepositoryName) -> Option<&Watcher> {
        self.operator.watchers.get(repository).filter(|watcher| watcher.commands)
    }

    /// What came of carrying a command out, for whoever asked.
    async fn carried_out(&self, repository: &RepositoryName, command: &CommentCommand) -> Result<String> {
        if self.operator.driver.clock.now().since(command.written_at) > LATE {
            return Ok("not carried out: it was asked for more than an hour ago".to_owned());
        }
        match self.act(repository, command).await {
            Ok(done) => Ok(told(&done)),
            Err(Refusal::Failed(failure)) if failure.class() != Class::Stalled => Err(failure),
            Err(Refusal::Unknown(why) | Refusal::Conflict(why) | Refusal::Invalid(why) | Refusal::Failed(why)) => {
                let hint = why.hint_text().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                Ok(format!("not carried out: {why:#}{hint}"))
            }
        }
    }

    /// Carries a command out; that it was is durable in the transaction that does it.
    async fn act(&self, repository: &RepositoryName, command: &CommentCommand) -> Result<Done, Refusal> {
        let preview = preview(&command.line).map_err(Refusal::Invalid)?;
        let done = CommentCommand { answer: Some(DONE.to_owned()), ..command.clone() };
        let driver = &self.operator.driver;
        let (run, now) = (Action::comments_of(repository), driver.clock.now());
        let answered = Write::Ask { run, action: Box::new(Action::comment(repository, done)), due: now, at: now };
        let operator = Operator { driver: driver.along(answered), ..self.operator.clone() };
        match preview {
            Some(head) => approved(&operator, repository, command, head.as_ref()).await,
            None => operator.act(self.meant(repository, command).await?, &command.by).await,
        }
    }

    /// What a command means.
    async fn meant(&self, repository: &RepositoryName, command: &CommentCommand) -> Result<Command, Refusal> {
        let spoken = Spoken::read(&command.line).map_err(Refusal::Invalid)?;
        let store = &*self.operator.driver.store;
        let state = store.repository(repository).await?;
        let project = state
            .and_then(|state| state.value.project)
            .ok_or_else(|| Refusal::Conflict(Failure::stalled(format!("nothing of `{repository}` was applied yet"))))?;
        spoken.meant(store, &project, format!("in pull request {}", command.pull)).await
    }
}

#[async_trait]
impl Comments for WatchedComments {
    async fn go_on(&self, repository: &RepositoryName, command: &CommentCommand) -> Result<Option<CommentCommand>> {
        let Some((watcher, host)) = self.watcher(repository).and_then(|it| Some((it, it.host.as_ref()?))) else {
            return Ok(None);
        };
        let Some(told) = &command.answer else {
            let told = self.carried_out(repository, command).await?;
            return Ok(Some(CommentCommand { answer: Some(told), ..command.clone() }));
        };
        let marker = marker(&watcher.watched.options.seed, repository, command);
        let text = answer(command, told);
        host.pull_requests.say(command.pull, None, Some(command.written_at), &marker, &text).await?;
        Ok(None)
    }
}

/// Approves what a pull request brings, which is deployed then to an environment of its own.
async fn approved(
    operator: &Operator,
    repository: &RepositoryName,
    command: &CommentCommand,
    head: Option<&CommitId>,
) -> Result<Done, Refusal> {
    let (said, by) = ((command.pull, head), command.by.as_str());
    let approve = |transition: &mut Transition<'_>| environments::approve(transition, repository, said, by);
    let head = operator.driver.decide(approve).await.map_err(conflict)?;
    let message = format!("{head} is approved for an environment of its own, and nothing that is pushed after it");
    Ok(Done { message, ..Done::default() })
}

/// A webhook's secret may be that of many repositories, and of many hosts: who somebody is, one host alone says, and where.
pub(super) fn refuse_foreign(host: &Host, from: webhook::Host, what: &str, path: &str) -> Result<()> {
    let watched = format!("{}/{}", host.repository.owner, host.repository.name);
    if from.is_of(host.kind) && watched.eq_ignore_ascii_case(path) {
        return Ok(());
    }
    let message = format!("the {what} is in `{path}` on {}, and `{watched}` is watched", from.as_str());
    Err(Failure::stalled(message).hint("set the repository's address to where it is now"))
}

/// The commands of a comment, or what is to be said of too many.
fn commands(from: webhook::Host, comment: &Comment) -> Vec<CommentCommand> {
    let command = |place: usize, answer: Option<String>| CommentCommand {
        comment: comment.id,
        place,
        pull: comment.pull,
        by: format!("{}:{}", from.as_str(), comment.author.login),
        line: comment.commands[place].clone(),
        written_at: comment.at,
        answer,
    };
    if comment.commands.len() > MOST {
        let why = format!("not carried out, nor any other of this comment: it has more than {MOST} commands");
        return vec![command(0, Some(why))];
    }
    (0..comment.commands.len()).map(|place| command(place, None)).collect()
}

/// What was done, and what people should know of it.
fn told(done: &Done) -> String {
    let warnings = done.evaluations.iter().flat_map(|evaluation| &evaluation.warnings);
    let warnings = warnings.map(|warning| format!("\nwarning: {warning}"));
    std::iter::once(done.message.clone()).chain(warnings).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::config::RetentionSettings;
    use crate::control::housekeeping::Housekeeping;
    use crate::forge::webhook::Host as From;
    use crate::model::comment::Author;
    use crate::model::object::Object;
    use crate::model::shipyard::{APPROVAL_TASK, DEPLOYMENT_TASK, Sequence, Shipyard, Stage, Task};
    use crate::simulation::runtime::Behaviour;
    use crate::simulation::world::World;
    use crate::testing::world::{deployment_config, hook, project};

    const REPOSITORY: &str = "repo";

    fn comments(world: &World) -> WatchedComments {
        let (driver, policy) = (world.driver.clone(), RetentionSettings::default());
        let housekeeping = Housekeeping { driver: driver.clone(), runtime: world.runtime.clone(), policy };
        WatchedComments::new(Operator { driver, watchers: Arc::new(BTreeMap::new()), housekeeping })
    }

    /// A command that was just written.
    fn command(world: &World, line: &str) -> CommentCommand {
        CommentCommand {
            comment: 12,
            place: 0,
            pull: 7,
            by: "gitea:ann".to_owned(),
            line: line.to_owned(),
            written_at: world.driver.clock.now(),
            answer: None,
        }
    }

    /// What waits in the outbox in the name of comments.
    async fn waiting(world: &World) -> Vec<CommentCommand> {
        let rows = world.driver.store.outbox(None).await.unwrap();
        let commands = rows.into_iter().filter_map(|row| match row.action {
            Ok(Action::Comment { command, .. }) => Some(*command),
            _ => None,
        });
        commands.collect()
    }

    /// Two versions of `web`, the second of which failed in its hook where that is asked for.
    async fn deployed(world: &mut World, fails: bool) {
        if fails {
            world.runtime.behave("shop-default/web-2-hook-pre", Behaviour::fails(1));
        }
        let strategy = json!({"strategy": {"type": "Recreate", "recreateParams": {"pre": hook("Abort")}}});
        for image in ["a", "b"] {
            let web = deployment_config("web", image, 1, strategy.clone());
            world.push(&project(Shipyard::implicit(), &[web])).await.unwrap();
            world.settle().await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_was_done_and_that_it_was_are_one_transaction() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        deployed(&mut world, false).await;
        let (comments, repository) = (comments(&world), RepositoryName::new(REPOSITORY));
        let asked = command(&world, "/launchway rollback web");
        // The daemon ends right after the transaction: whoever comes after it finds the answer, and nothing else to do.
        let done = comments.act(&repository, &asked).await.unwrap();
        assert!(done.message.contains("rolled back to version 1 as version 3"), "{}", done.message);
        let left = waiting(&world).await;
        assert_eq!(left, [CommentCommand { answer: Some(DONE.to_owned()), ..asked }]);

        // What is refused changes nothing, so that it is decided anew.
        let refused = command(&world, "/launchway rollback web --to-version 9");
        let told = comments.carried_out(&repository, &refused).await.unwrap();
        assert!(told.starts_with("not carried out: "), "{told}");
        assert_eq!(waiting(&world).await, left);
    }

    #[tokio::test]
    async fn commands_are_those_that_everybody_has() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        let (comments, repository) = (comments(&world), RepositoryName::new(REPOSITORY));
        let before = comments.carried_out(&repository, &command(&world, "/launchway retry web")).await.unwrap();
        assert!(before.starts_with("not carried out: "), "{before}");
        deployed(&mut world, true).await;
        let mut told = String::new();
        for line in [
            "/launchway retry api",
            "/launchway retry web -s production",
            "/launchway approve web",
            "/launchway rollback web --to-version 9",
            "/launchway retry dc/web -s default",
        ] {
            let command = command(&world, line);
            let late = CommentCommand { written_at: crate::model::time::Timestamp(0), ..command.clone() };
            let refused = comments.carried_out(&repository, &late).await.unwrap();
            assert_eq!(refused, "not carried out: it was asked for more than an hour ago", "{line}");
            told += &comments.carried_out(&repository, &command).await.unwrap();
            told.push('\n');
        }
        let expected = "\
not carried out: there is no deployment config or service `api`
not carried out: there is no deployment config or service `web` in stage production
not carried out: nothing is under way of `web`
";
        assert!(told.starts_with(expected), "{told}");
        assert!(told.ends_with("retried rollout #2\n"), "{told}");
    }

    #[tokio::test]
    async fn a_name_means_a_deployment_config_or_all_of_a_service_in_one_stage() {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::open(folder.path()).unwrap();
        let (comments, repository) = (comments(&world), RepositoryName::new(REPOSITORY));
        let tasks = vec![Task::named(APPROVAL_TASK), Task::named(DEPLOYMENT_TASK)];
        let delivery = Sequence { name: "delivery".into(), tasks, ..Sequence::default() };
        let stage = |name: &str| Stage { name: name.into(), sequences: vec![delivery.clone()] };
        let shipyard =
            Shipyard { name: "shop".into(), stages: vec![stage("dev"), stage("production")], ..Shipyard::default() };
        let declared = |image: &str| {
            let part = |name: &str| Object { service: "store".into(), ..deployment_config(name, image, 1, json!({})) };
            project(shipyard.clone(), &[part("web"), part("api")])
        };
        // (what is pushed before, what is asked for, what is to be told)
        for (image, line, expected) in [
            (Some("a"), "/launchway retry store", "there is no deployment config or service `store`"),
            (None, "/launchway approve store", "approved"),
            (None, "/launchway approve store -s dev", "nothing is under way of `store` in stage dev"),
            (None, "/launchway approve store", "approved"),
            (None, "/launchway rollback store", "choose one: `-s dev`, `-s production`"),
            (Some("b"), "/launchway approve web", "approved"),
            (None, "/launchway reject store", "rejected"),
            (None, "/launchway retry store -s dev", "name one of `api`, `web`"),
            (None, "/launchway rollback store -s dev --to-version 1", "name one of `api`, `web`"),
            (None, "/launchway rollback store -s dev", "deploymentconfig/web rolled back to version 1 as version 3"),
        ] {
            if let Some(image) = image {
                world.push(&declared(image)).await.unwrap();
                world.settle().await.unwrap();
            }
            let told = comments.carried_out(&repository, &command(&world, line)).await.unwrap();
            assert!(told.contains(expected), "{line}: {told}");
            assert!(!line.ends_with("rollback store -s dev") || told.contains("deploymentconfig/api rolled"), "{told}");
            world.settle().await.unwrap();
        }
    }

    #[test]
    fn so_many_commands_of_a_comment_are_carried_out_or_none() {
        let comment = |commands: usize| Comment {
            id: 12,
            pull: 7,
            repository: "acme/shop".to_owned(),
            author: Author { login: "ann".to_owned(), id: "3".to_owned() },
            at: crate::model::time::Timestamp(0),
            commands: vec!["/launchway retry web".to_owned(); commands],
        };
        let two = commands(From::Github, &comment(2));
        let told: Vec<_> = two.iter().map(|it| (it.place, &*it.by, it.answer.is_some())).collect();
        assert_eq!(told, [(0, "github:ann", false), (1, "github:ann", false)]);
        let many = commands(From::Github, &comment(MOST + 1));
        assert!(many.len() == 1 && many[0].answer.is_some(), "{many:?}");
    }
}
