//! The whole daemon against a real Gitea: a push, the webhook, real pods, and statuses read back.

mod process;
mod protected;
mod recorder;
mod shop;

pub(crate) use process::eventually;
use process::{Daemon, Watching, entry};
use recorder::Recorder;
use serde_json::Value;

use crate::receiver::SECRET;
use crate::repository::{Repository, ShownStatus};
use crate::work_tree::WorkTree;

/// The state and the description of a context.
fn told<'a>(statuses: &'a [ShownStatus], context: &str) -> (&'a str, &'a str) {
    let status = statuses.iter().find(|status| status.context == context);
    assert!(status.is_some(), "nothing is told about {context}: {statuses:#?}");
    let status = status.unwrap();
    (&status.state, &status.description)
}

fn contexts(statuses: &[ShownStatus]) -> Vec<&str> {
    statuses.iter().map(|status| status.context.as_str()).collect()
}

/// The shop, pushed for the first time.
async fn pushed_shop(repository: &Repository) -> (WorkTree, String) {
    let tree = WorkTree::create(repository);
    let commit = shop::commit(&tree);
    tree.push_over_http("main").await;
    (tree, commit)
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_push_over_http_is_deployed_and_told_on_its_commit() {
    let repository = Repository::create("daemon-http").await;
    let (tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    repository.add_hook(&daemon.webhook_url(), SECRET, "json").await;

    let second = shop::commit_change(&tree);
    tree.push_over_http("main").await;
    let statuses = daemon.settled(&repository, &second).await;
    let expected = [
        "launchway/dev",
        "launchway/dev/web",
        "launchway/dev/web/pre",
        "launchway/plan",
        "launchway/production",
        "launchway/production/web",
        "launchway/production/web/pre",
    ];
    assert_eq!(contexts(&statuses), expected);
    assert!(statuses.iter().all(|status| status.state == "success"), "{statuses:#?}");
    assert_eq!((daemon.serving("dev").await, daemon.serving("production").await), ((2, 1), (2, 1)));
    for status in &statuses {
        let page = daemon.page(&status.target_url).await;
        if status.context.ends_with("/pre") {
            assert!(page.contains("pre") && page.contains("the tables fit"), "{}: {page}", status.target_url);
        }
    }
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_push_over_ssh_is_deployed_with_a_key_and_told_with_a_token() {
    let repository = Repository::create_private("daemon-ssh").await;
    let tree = WorkTree::create(&repository);
    let (key, public_key) = tree.make_key();
    repository.add_deploy_key(&public_key).await;
    let first = shop::commit(&tree);
    tree.push_over_ssh(&key, "main").await;
    let files = [("sshKeyFile", &key), ("knownHostsFile", &repository.server.known_hosts())];
    let credentials = files.map(|(name, file)| entry(name, file)).to_vec();
    let watching = Watching { url: repository.ssh_url(), credentials, ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;
    daemon.settled(&repository, &first).await;
    repository.add_hook(&daemon.webhook_url(), SECRET, "json").await;

    let second = shop::commit_change(&tree);
    tree.push_over_ssh(&key, "main").await;
    let statuses = daemon.settled(&repository, &second).await;
    assert!(statuses.iter().all(|status| status.state == "success"), "{statuses:#?}");
    assert_eq!(daemon.serving("production").await, (2, 1));
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_host_key_is_never_trusted_because_it_is_the_first() {
    let repository = Repository::create("daemon-unknown-host").await;
    let tree = WorkTree::create(&repository);
    let (key, public_key) = tree.make_key();
    repository.add_deploy_key(&public_key).await;
    shop::commit(&tree);
    tree.push_over_ssh(&key, "main").await;
    let known_hosts = key.with_file_name("known_hosts");
    std::fs::write(&known_hosts, "").unwrap();
    let credentials = vec![entry("sshKeyFile", &key), entry("knownHostsFile", &known_hosts)];
    let watching = Watching { url: repository.ssh_url(), credentials, ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;

    let listed = daemon.command(&["get", "repositories"]);
    assert!(listed.contains("Failed") && listed.contains("host key"), "{listed}");
    assert_eq!(std::fs::read_to_string(&known_hosts).unwrap(), "");
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_failing_hook_is_told_with_its_last_lines_and_changes_nothing() {
    let repository = Repository::create("daemon-failing-hook").await;
    let (tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    repository.add_hook(&daemon.webhook_url(), SECRET, "json").await;

    let second = shop::commit_failure(&tree);
    tree.push_over_http("main").await;
    let statuses = daemon.settled(&repository, &second).await;
    let (state, description) = told(&statuses, "launchway/dev/web/pre");
    assert_eq!(state, "failure");
    assert!(description.contains("exit code 3") && description.contains("no table orders"), "{description}");
    assert_eq!(told(&statuses, "launchway/dev").0, "failure");
    let (state, description) = told(&statuses, "launchway/production");
    assert!(state == "skipped" && description.contains("dev stopped it"), "{state}: {description}");
    assert_eq!((daemon.serving("dev").await, daemon.serving("production").await), ((1, 1), (1, 1)));
    let of_hook = statuses.iter().find(|status| status.context.ends_with("/pre")).unwrap();
    let page = daemon.page(&of_hook.target_url).await;
    assert!(page.contains("looking for tables\nthere is no table orders"), "{page}");
    assert!(page.contains(r#"<span class="added">+ git:web@"#), "{page}");
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn what_no_webhook_tells_is_found_by_the_poll() {
    let repository = Repository::create("daemon-poll").await;
    let (tree, first) = pushed_shop(&repository).await;
    let watching = Watching { poll: "1s", ..Watching::over_http(&repository) };
    let mut daemon = Daemon::start(&repository, &watching).await;
    daemon.settled(&repository, &first).await;
    repository.add_hook(&daemon.webhook_url(), "known to nobody", "json").await;

    let second = shop::commit_change(&tree);
    tree.push_over_http("main").await;
    assert_eq!(told(&daemon.settled(&repository, &second).await, "launchway/production").0, "success");
    eventually("the webhook is refused", async || {
        let refused = r#"launchway_webhooks_total{repository="shop",result="refused"}"#;
        daemon.page("/metrics").await.contains(refused).then_some(())
    })
    .await;

    daemon.stop();
    let third = shop::commit_failure(&tree);
    tree.push_over_http("main").await;
    daemon.resume().await;
    assert_eq!(told(&daemon.settled(&repository, &third).await, "launchway/dev").0, "failure");
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_token_without_rights_is_named_and_stops_no_deployment() {
    let repository = Repository::create("daemon-rights").await;
    let (_tree, commit) = pushed_shop(&repository).await;
    let token = repository.server.user_token("daemon-reader", &["read:repository"]).await;
    let watching = Watching { poll: "1s", token: token.clone(), ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;
    eventually("both stages serve", async || (daemon.serving("production").await == (1, 1)).then_some(())).await;
    assert!(repository.statuses(&commit).await.is_empty());
    let problem = "the token may not write commit statuses";
    let shown = [
        daemon.command(&["get", "repositories"]),
        daemon.command(&["status"]),
        daemon.page("/").await,
        daemon.api("repositories/shop").await["statusProblem"].to_string(),
        daemon.log(),
    ];
    for text in shown {
        assert!(text.contains(problem) && !text.contains(&token), "{text}");
    }
    // What happens is told as it happens, or tried to be. After that it syncs every second, and asks more and more seldom
    // whether the token may write by now: after 1, 3, 7 and 15 seconds.
    eventually("nothing more is to be told", async || {
        (daemon.api(&format!("revisions/shop/{commit}")).await["goesOn"] != true).then_some(())
    })
    .await;
    let (before, refused) = (syncs(&daemon).await, refused(&daemon).await);
    eventually("it has synced often", async || (syncs(&daemon).await >= before + 20).then_some(())).await;
    let again = self::refused(&daemon).await - refused;
    assert!((1..=10).contains(&again), "{again} times");

    daemon.set_token(repository.server.admin_token());
    let statuses = daemon.settled(&repository, &commit).await;
    assert_eq!(told(&statuses, "launchway/production").0, "success");
    eventually("the problem is gone", async || {
        daemon.api("repositories/shop").await["statusProblem"].is_null().then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_webhook_that_is_told_again_deploys_nothing_again() {
    let repository = Repository::create("daemon-replay").await;
    let (tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    let (recorder, url) = Recorder::before(daemon.webhook_url()).await;
    let hook = repository.add_hook(&url, SECRET, "json").await;
    let second = shop::commit_change(&tree);
    tree.push_over_http("main").await;
    daemon.settled(&repository, &second).await;
    let runs = daemon.api("runs").await;
    let (posted, syncs) = (repository.posted(&second).await, syncs(&daemon).await);

    assert_eq!(recorder.replay().await["result"], "duplicate");
    // A new delivery about the same commit is a look that finds nothing.
    repository.test_hook(hook).await;
    eventually("the repository is synced", async || (self::syncs(&daemon).await > syncs).then_some(())).await;
    assert_eq!(recorder.replay().await["result"], "duplicate");
    assert_eq!(daemon.api("runs").await, runs);
    assert_eq!(repository.posted(&second).await, posted);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_failing_push_is_answered_by_a_pull_request_and_merging_it_is_healthy() {
    let repository = Repository::create("daemon-rollback").await;
    let tree = WorkTree::create(&repository);
    shop::commit(&tree);
    let first = shop::commit_policy(&tree, "pull-request");
    tree.push_over_http("main").await;
    let watching = Watching { poll: "1s", ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;
    daemon.settled(&repository, &first).await;

    let second = shop::commit_failure(&tree);
    tree.push_over_http("main").await;
    assert_eq!(told(&daemon.settled(&repository, &second).await, "launchway/dev").0, "failure");
    let pull = eventually("a pull request", async || repository.pulls("open").await.into_iter().next()).await;
    assert_eq!((&pull["head"]["ref"], &pull["base"]["ref"]), (&"launchway/rollback-web-1".into(), &"main".into()));
    let body = pull["body"].as_str().unwrap();
    for expected in
        ["there is no table orders", "`web/`", "### The plan of merging it now", "restored: equal to what serves"]
    {
        assert!(body.contains(expected), "{expected}: {body}");
    }
    eventually("it has a label", async || {
        (repository.pulls("open").await[0]["labels"][0]["name"] == "rollback").then_some(())
    })
    .await;
    eventually("the daemon tells of it", async || {
        daemon.command(&["why", "dc/web", "-s", "dev"]).contains(pull["html_url"].as_str().unwrap()).then_some(())
    })
    .await;
    let number = pull["number"].as_u64().unwrap();

    // Closing it leaves everything as it is; asked for again, there is another one.
    repository.close(number).await;
    eventually("the daemon hears of it", async || {
        daemon.command(&["why", "dc/web", "-s", "dev"]).contains("closed without being merged").then_some(())
    })
    .await;
    let done = daemon.command(&["rollback", "dc/web", "-s", "dev", "--pull-request"]);
    assert!(done.contains("is proposed: pull request #"), "{done}");
    assert_eq!(repository.pulls("all").await.len(), 2);
    let again = repository.pulls("open").await.remove(0)["number"].as_u64().unwrap();
    daemon.command(&["rollback", "dc/web", "-s", "dev", "--pull-request"]);
    assert_eq!(repository.pulls("all").await.len(), 2, "there is one for an incident");

    let merged = repository.merge(again).await;
    let statuses = daemon.settled(&repository, &merged).await;
    assert!(statuses.iter().all(|status| matches!(&*status.state, "success" | "skipped")), "{statuses:#?}");
    assert_eq!((daemon.serving("dev").await, daemon.serving("production").await), ((1, 1), (1, 1)));
    let proposals = daemon.api("repositories/shop").await["proposals"].clone();
    assert_eq!(proposals[0]["state"], "restored", "{proposals}");
    eventually("its branch is gone", async || (repository.branches().await == ["main"]).then_some(())).await;
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_pull_request_that_a_push_overtakes_is_closed_with_the_reason() {
    let repository = Repository::create("daemon-overtaken").await;
    let tree = WorkTree::create(&repository);
    shop::commit(&tree);
    let first = shop::commit_policy(&tree, "pull-request");
    tree.push_over_http("main").await;
    let watching = Watching { poll: "1s", ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;
    daemon.settled(&repository, &first).await;
    let second = shop::commit_failure(&tree);
    tree.push_over_http("main").await;
    daemon.settled(&repository, &second).await;
    let pull = eventually("a pull request", async || repository.pulls("open").await.into_iter().next()).await;
    let number = pull["number"].as_u64().unwrap();

    tree.git(&["revert", "--no-edit", "HEAD"]);
    tree.push_over_http("main").await;
    eventually("it is closed", async || repository.pulls("open").await.is_empty().then_some(())).await;
    let comments = repository.comments(number).await;
    let told: Vec<&str> = comments.iter().filter_map(|comment| comment["body"].as_str()).collect();
    assert_eq!(told.len(), 1, "{comments:#?}");
    assert!(told[0].contains("this rollback of web to version 1 in dev is not needed any more"), "{told:?}");
    eventually("its branch is gone", async || (repository.branches().await == ["main"]).then_some(())).await;
}

/// The webhooks of a repository that lead to a daemon.
async fn hooks_of(repository: &Repository, daemon: &Daemon) -> Vec<Value> {
    let leads = |hook: &Value| hook["config"]["url"] == daemon.webhook_url();
    repository.hooks().await.into_iter().filter(leads).collect()
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_webhook_is_registered_repaired_and_tried_out_by_a_check() {
    let repository = Repository::create("daemon-check").await;
    let (tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    let foreign = "http://127.0.0.1:1/webhooks/shop";
    repository.add_hook(foreign, "somebody's", "json").await;

    let told = daemon.check(&[]);
    assert!(told.contains("Gitea has none that calls") && told.contains("--register-webhook"), "{told}");
    assert!(told.contains("statuses: the token may write them"), "{told}");
    assert!(hooks_of(&repository, &daemon).await.is_empty(), "a look changes nothing");
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("registered: Gitea calls") && told.contains("test delivery: push was accepted"), "{told}");
    assert!(told.contains(&format!("another one calls {foreign}, and was left alone")), "{told}");
    assert!(!told.contains(SECRET), "{told}");
    let registered = hooks_of(&repository, &daemon).await;
    assert_eq!(registered.len(), 1, "{registered:#?}");
    let mut events: Vec<&str> =
        registered[0]["events"].as_array().unwrap().iter().filter_map(|event| event.as_str()).collect();
    events.sort_unstable();
    assert_eq!(events, ["pull_request", "pull_request_sync", "push"], "{registered:#?}");

    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("webhook: Gitea calls") && told.contains("push was accepted"), "{told}");
    let ids = |hooks: &[Value]| hooks.iter().map(|hook| hook["id"].clone()).collect::<Vec<Value>>();
    let found = hooks_of(&repository, &daemon).await;
    assert_eq!(ids(&found), ids(&registered), "a second check changes nothing");
    let second = shop::commit_change(&tree);
    tree.push_over_http("main").await;
    assert_eq!(self::told(&daemon.settled(&repository, &second).await, "launchway/production").0, "success");

    // Gitea shows no secret: what it calls with tells.
    repository.remove_hook(registered[0]["id"].as_u64().unwrap()).await;
    repository.add_hook(&daemon.webhook_url(), "known to nobody", "form").await;
    let told = daemon.check(&[]);
    assert!(told.contains("it sends forms, and not JSON") && told.contains("it tells of create"), "{told}");
    repository.remove_hook(hooks_of(&repository, &daemon).await[0]["id"].as_u64().unwrap()).await;
    repository.add_right_hook(&daemon.webhook_url(), "known to nobody").await;
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("(it has another secret than the daemon)") && told.contains("push was accepted"), "{told}");
    assert_eq!(hooks_of(&repository, &daemon).await.len(), 1);
    assert_eq!(repository.hooks().await.len(), 2, "somebody's is left alone");
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_token_that_may_not_register_a_webhook_says_what_it_needs() {
    let repository = Repository::create("daemon-check-rights").await;
    let (_tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    let token = repository.server.user_token("daemon-checker", &["write:repository"]).await;
    daemon.set_token(&token);
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("the token may not read and register webhooks"), "{told}");
    assert!(told.contains("statuses: the token may not write commit statuses"), "{told}");
    assert!(told.contains("its user has to administer the repository") && !told.contains(&token), "{told}");
    assert!(repository.hooks().await.is_empty());
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_pull_request_tells_the_plan_of_merging_it_and_merging_does_that() {
    let repository = Repository::create("daemon-preview").await;
    let (tree, first) = pushed_shop(&repository).await;
    let daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("registered: Gitea calls"), "{told}");

    tree.git(&["checkout", "--quiet", "-b", "topic"]);
    let head = shop::commit_change(&tree);
    tree.push_over_http("topic").await;
    let number = repository.open_pull("topic").await;
    let comment = async |commit: &str| {
        let comments = repository.comments(number).await;
        assert!(comments.len() <= 1, "{comments:#?}");
        let text = comments.first()?["body"].as_str()?.to_owned();
        text.contains(&commit[..7]).then_some(text)
    };
    let text = eventually("a comment", async || comment(&head).await).await;
    for expected in
        ["**`dev`**, with the push", "deploy `DeploymentConfig/web`", "runs `pre (Abort)", "**`production`**"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let status = eventually("a status", async || plan_of(&repository, &head).await).await;
    assert_eq!(status.state, "success");
    assert!(status.description.starts_with("merging it: dev: 1 deploy"), "{}", status.description);
    assert_eq!(daemon.serving("dev").await, (1, 1), "nothing of it runs");

    // A push to it changes the same comment, also one that is forced.
    tree.git(&["commit", "--quiet", "--amend", "--message", "the same again"]);
    let second = tree.head();
    tree.push_over_http("+topic").await;
    eventually("the comment follows", async || comment(&second).await).await;

    let merged = repository.merge(number).await;
    let statuses = daemon.settled(&repository, &merged).await;
    assert!(statuses.iter().all(|status| status.state == "success"), "{statuses:#?}");
    assert_eq!((daemon.serving("dev").await, daemon.serving("production").await), ((2, 1), (2, 1)));
    assert_eq!(repository.comments(number).await.len(), 1);
}

/// What is reported on a commit's plan.
async fn plan_of(repository: &Repository, commit: &str) -> Option<ShownStatus> {
    repository.statuses(commit).await.into_iter().find(|status| status.context == "launchway/plan")
}

/// How often the daemon synced the repository.
async fn syncs(daemon: &Daemon) -> u64 {
    counted(daemon, r#"launchway_repository_syncs_total{repository="shop"} "#).await
}

/// How often the host refused statuses.
async fn refused(daemon: &Daemon) -> u64 {
    counted(daemon, r#"launchway_actions_total{action="report",result="failed"} "#).await
}

/// What a line of the metrics that begins so counts.
async fn counted(daemon: &Daemon, begins: &str) -> u64 {
    let metrics = daemon.page("/metrics").await;
    metrics.lines().find_map(|line| line.strip_prefix(begins)).unwrap().parse().unwrap()
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn who_may_write_commands_in_a_comment_and_is_answered() {
    let repository = Repository::create("daemon-comments").await;
    let (tree, first) = pushed_shop(&repository).await;
    let watching = Watching { commands: true, ..Watching::over_http(&repository) };
    let daemon = Daemon::start(&repository, &watching).await;
    daemon.settled(&repository, &first).await;
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("registered: Gitea calls"), "{told}");
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("webhook: Gitea calls"), "a second check changes nothing: {told}");
    let second = shop::commit_change(&tree);
    tree.push_over_http("main").await;
    daemon.settled(&repository, &second).await;
    tree.git(&["checkout", "-q", "-b", "topic"]);
    tree.commit("README.md", "another shop\n");
    tree.push_over_http("topic").await;
    let number = repository.open_pull("topic").await;

    let command = "Orders fail.\n\n/launchway rollback dc/web -s dev\n";
    let stranger = repository.server.user_token("daemon-commenter", &["write:issue"]).await;
    repository.comment(number, &stranger, command).await;
    eventually("it is refused", async || {
        let told = daemon.command(&["repository", "deliveries", "shop"]);
        told.contains("`daemon-commenter` may not write").then_some(())
    })
    .await;
    assert_eq!(daemon.serving("dev").await, (2, 1));
    repository.comment(number, repository.server.admin_token(), command).await;
    eventually("the rollback serves", async || (daemon.serving("dev").await == (3, 1)).then_some(())).await;
    let answer = eventually("an answer", async || {
        let all = repository.comments(number).await;
        all.iter()
            .filter_map(|comment| comment["body"].as_str())
            .find(|text| text.contains("rolled back"))
            .map(str::to_owned)
    })
    .await;
    assert!(answer.contains("of `admin`") && answer.contains("to version 1 as version 3"), "{answer}");
    assert_eq!(daemon.api("holds").await["items"][0]["by"], "gitea:admin");
}
