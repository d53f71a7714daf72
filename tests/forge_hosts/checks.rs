//! Check runs of a GitHub App.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use launchway::clock::ManualClock;
use launchway::forge::address::RepositoryAddress;
use launchway::forge::credential::Credential;
use launchway::forge::github::app::{AppSettings, Installation};
use launchway::forge::{HostSettings, Refusal, StatusWriter, github};
use launchway::model::commit_status::{CommitStatus, Details, StatusState};
use launchway::secret::{Secret, SecretSource};
use serde_json::json;
use tempfile::TempDir;

use crate::github_app::{APP, PERSONAL, Run, Shared, Trouble, private_key, serve};
use crate::soak::Numbers;
use crate::{COMMIT, OTHER, clock, settings, status};

/// GitHub, and a writer of the App to it.
struct World {
    shared: Shared,
    writer: Arc<dyn StatusWriter>,
    installation: Arc<Installation>,
    settings: HostSettings,
    clock: Arc<ManualClock>,
    folder: TempDir,
}

impl World {
    async fn start() -> Self {
        let (clock, folder) = (clock(), tempfile::tempdir().unwrap());
        let shared = Shared::new(clock.clone());
        shared.hub().commits = Some(vec![COMMIT.to_owned(), OTHER.to_owned()]);
        let address = serve(shared.clone(), "acme/shop").await;
        let repository = RepositoryAddress::new(&format!("http://{address}/acme/shop.git"), None).unwrap();
        let key_file = folder.path().join("app.pem");
        std::fs::write(&key_file, private_key()).unwrap();
        let app = AppSettings { id: APP, key_file };
        let installation = Installation::new(&app, repository.clone(), None, false, clock.clone()).await.unwrap();
        let credential: Arc<dyn Credential> = installation.clone();
        let settings = HostSettings { credential, app: Some(APP), ..settings(repository, &folder) };
        let writer = github::writer(settings.clone(), clock.clone()).await.unwrap();
        assert_eq!(writer.name().as_str(), "github-app");
        Self { shared, writer, installation, settings, clock, folder }
    }

    async fn write(&self, status: CommitStatus) {
        self.writer.write(&[status]).await.unwrap();
    }

    /// How many tokens were asked for, and how often one was refused.
    fn asked_and_refused(&self) -> (usize, usize) {
        let hub = self.shared.hub();
        (hub.asked.len(), hub.refused)
    }
}

fn dev(state: StatusState, description: &str) -> CommitStatus {
    status(COMMIT, "dev", state, description)
}

#[tokio::test]
async fn a_check_run_follows_what_happens_and_one_that_has_ended_is_followed_by_another() {
    let world = World::start().await;
    for _ in 0..2 {
        world.write(dev(StatusState::Pending, "waits")).await;
        world.write(dev(StatusState::Running, "version 2")).await;
        world.write(dev(StatusState::Running, "version 2: 1 of 3")).await;
        world.write(dev(StatusState::Failure, "exit code 3")).await;
        world.write(dev(StatusState::Failure, "exit code 3")).await;
    }
    world.write(dev(StatusState::Success, "version 2 serves")).await;
    world.write(dev(StatusState::Success, "version 2 serves, all of it")).await;
    let attempt = [
        "new queued launchway/dev waits",
        "over in_progress launchway/dev version 2",
        "over in_progress launchway/dev version 2: 1 of 3",
        "over failure launchway/dev exit code 3",
    ];
    let end = ["new success launchway/dev version 2 serves", "over success launchway/dev version 2 serves, all of it"];
    assert_eq!(world.shared.hub().told, [&attempt[..], &attempt[..], &end[..]].concat());
    let run = world.shared.run(COMMIT, "launchway/dev").unwrap();
    assert_eq!(run.text("/details_url"), "https://deploy.example/runs/7");
    assert_eq!(run.text("/external_id"), "launchway/dev");
}

#[tokio::test]
async fn what_is_there_already_is_not_written_again_and_runs_of_others_are_none_of_its() {
    let world = World::start().await;
    let body = json!({"name": "launchway/dev", "head_sha": COMMIT, "status": "completed", "conclusion": "success",
                      "output": {"title": "it", "summary": "    it\n"}});
    world.shared.hub().runs.push(Run { id: 0, app: 99, body, annotations: Vec::new() });
    let many: Vec<CommitStatus> =
        (0..45).map(|n| status(COMMIT, &format!("s{n}"), StatusState::Success, "it")).collect();
    // Without a public address, GitHub shows the App's page.
    let settings = HostSettings { public_url: None, ..world.settings.clone() };
    let writer = github::writer(settings, world.clock.clone()).await.unwrap();
    for _ in 0..3 {
        writer.write(&many).await.unwrap();
        writer.write(&[dev(StatusState::Success, "it")]).await.unwrap();
    }
    assert_eq!(world.shared.runs(COMMIT).len(), 46);
    assert_eq!(world.shared.hub().told.len(), 46);
}

#[tokio::test]
async fn an_answer_that_was_lost_writes_nothing_twice_and_a_commit_that_is_gone_keeps_nobody_waiting() {
    let world = World::start().await;
    world.shared.hub().troubles.push_back(Trouble::Lost);
    let wanted = [dev(StatusState::Success, "a"), status(OTHER, "dev", StatusState::Success, "b")];
    assert!(matches!(world.writer.write(&wanted).await, Err(Refusal::Busy(_))));
    world.writer.write(&wanted).await.unwrap();
    assert_eq!(world.shared.runs(COMMIT), ["success launchway/dev a"]);

    world.shared.hub().commits = Some(vec![OTHER.to_owned()]);
    let wanted = [dev(StatusState::Success, "c"), status(OTHER, "dev", StatusState::Success, "d")];
    let Err(Refusal::Commit(failure)) = world.writer.write(&wanted).await else { panic!("it is gone") };
    assert!(failure.one_line().contains("does not have the commit 1111111"), "{failure}");
    assert_eq!(world.shared.runs(OTHER), ["success launchway/dev d"]);
}

#[tokio::test]
async fn a_token_is_asked_for_once_and_replaced_before_its_end_or_where_it_is_refused() {
    let world = World::start().await;
    world.write(dev(StatusState::Running, "a")).await;
    world.write(dev(StatusState::Running, "b")).await;
    let asked =
        json!({"repositories": ["shop"], "permissions": {"checks": "write", "contents": "read", "metadata": "read"}});
    assert_eq!(world.shared.hub().asked, std::slice::from_ref(&asked), "what is not needed is not asked for");

    world.clock.advance(Duration::from_secs(54 * 60));
    world.write(dev(StatusState::Running, "c")).await;
    assert_eq!(world.shared.hub().asked.len(), 1);
    world.clock.advance(Duration::from_secs(2 * 60));
    world.write(dev(StatusState::Running, "d")).await;
    assert_eq!(world.asked_and_refused(), (2, 0));

    // It is worth nothing while many statuses are written: one request is refused, and no status is lost.
    world.shared.revoke();
    let many: Vec<CommitStatus> = (0..5).map(|n| status(OTHER, &format!("s{n}"), StatusState::Success, "it")).collect();
    world.writer.write(&many).await.unwrap();
    assert_eq!(world.asked_and_refused(), (3, 1));
    assert_eq!(world.shared.runs(OTHER).len(), 5);

    let tokens: Vec<String> = world.shared.hub().tokens.iter().map(|(token, _)| token.clone()).collect();
    let shown = format!("{:?} {:?}", world.installation, world.settings);
    assert!(tokens.iter().all(|token| !shown.contains(token)) && !shown.contains("PRIVATE KEY"), "{shown}");
}

#[tokio::test]
async fn whoever_may_not_write_check_runs_is_told_what_to_do() {
    let world = World::start().await;
    let told = async |writer: &Arc<dyn StatusWriter>| match writer.write(&[dev(StatusState::Running, "a")]).await {
        Err(Refusal::All(failure)) => failure.one_line(),
        other => panic!("{other:?}"),
    };
    let person: Arc<dyn Credential> = Arc::new(SecretSource::Value(Secret::new(PERSONAL)));
    let personal = HostSettings { credential: person, ..world.settings.clone() };
    let personal = github::writer(personal, world.clock.clone()).await.unwrap();
    let message = told(&personal).await;
    assert!(message.contains("the App needs `Checks: read and write`"), "{message}");

    world.shared.hub().is_installed = false;
    let message = told(&world.writer).await;
    assert!(message.contains("the App 1234 is not installed on `acme/shop`"), "{message}");
    world.shared.hub().is_installed = true;
    world.shared.hub().permissions = json!({"metadata": "read"});
    let message = told(&world.writer).await;
    assert!(message.contains("whoever installed it has to accept that"), "{message}");

    world.shared.revoke();
    let key = world.folder.path().join("app.pem");
    std::fs::write(&key, "hunter2").unwrap();
    let message = told(&world.writer).await;
    assert!(
        message.contains("app.pem` cannot be used: it is no private key") && !message.contains("hunter2"),
        "{message}"
    );
    // The clock of this machine is wrong by far, or the key is another App's: GitHub says so.
    std::fs::write(&key, private_key()).unwrap();
    let other = AppSettings { id: 4321, key_file: key };
    let repository = world.settings.repository.clone();
    let other = Installation::new(&other, repository, None, false, world.clock.clone()).await.unwrap();
    let message = other.granted().await.unwrap_err().one_line();
    assert!(
        message.contains("check `forge.app`: its `id`, the key in its `keyFile`, and this machine's clock"),
        "{message}"
    );
}

#[tokio::test]
async fn problems_stand_at_their_lines_once() {
    let world = World::start().await;
    let broken = |lines: usize| {
        let problems = (1..=lines).map(|line| format!("web.yaml:{line}:3: error: unknown key `x{line}`")).collect();
        let details = Details::new(format!("sha256:{lines}").as_str().into(), Vec::new(), problems);
        CommitStatus {
            details: Some(details),
            ..status(COMMIT, "plan", StatusState::Error, &format!("{lines} problems"))
        }
    };
    for _ in 0..3 {
        world.write(broken(2)).await;
    }
    let run = world.shared.run(COMMIT, "launchway/plan").unwrap();
    let expected = json!({"path": "web.yaml", "start_line": 2, "end_line": 2, "annotation_level": "failure",
                          "message": "unknown key `x2`"});
    assert_eq!((run.annotations.len(), &run.annotations[1]), (2, &expected));
    // They are not taken back: what has others is another run.
    world.write(broken(70)).await;
    world.write(broken(70)).await;
    assert_eq!(world.shared.run(COMMIT, "launchway/plan").unwrap().annotations.len(), 50);
    assert_eq!(world.shared.hub().told.len(), 2);
}

#[tokio::test]
async fn github_shows_what_was_wanted_whatever_fails_and_whenever_tokens_end() {
    let world = World::start().await;
    let mut numbers = Numbers(11);
    let mut wanted: BTreeMap<(String, String), CommitStatus> = BTreeMap::new();
    for transition in 0..300 {
        match numbers.below(8) {
            0 => world.shared.hub().troubles.push_back(Trouble::Status(409)),
            1 => world.shared.hub().troubles.push_back(Trouble::Status(503)),
            2 => world.shared.hub().troubles.push_back(Trouble::Lost),
            3 => world.shared.revoke(),
            _ => {}
        }
        let commit = [COMMIT, OTHER][usize::try_from(numbers.below(2)).unwrap()];
        let states = [StatusState::Pending, StatusState::Running, StatusState::Success, StatusState::Failure];
        let state = states[usize::try_from(numbers.below(4)).unwrap()];
        let next = status(commit, &format!("s{}", numbers.below(4)), state, &format!("transition {transition}"));
        wanted.insert((commit.to_owned(), next.context.clone()), next.clone());
        loop {
            match world.writer.write(std::slice::from_ref(&next)).await {
                Ok(()) => break,
                Err(Refusal::Busy(_)) => world.clock.advance(Duration::from_secs(20)),
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
    }
    for ((commit, context), status) in &wanted {
        let state = match status.state {
            StatusState::Pending => "queued",
            StatusState::Running => "in_progress",
            StatusState::Success => "success",
            _ => "failure",
        };
        let told = world.shared.run(commit, context).unwrap().told();
        assert_eq!(told, format!("{state} {context} {}", status.description));
    }
    let hub = world.shared.hub();
    assert_eq!(hub.limits_broken, 0);
    assert!(
        hub.told
            .windows(2)
            .all(|pair| pair[0].split_once(' ').map(|told| told.1) != pair[1].split_once(' ').map(|told| told.1)),
        "written twice in a row"
    );
}
