//! A branch that takes nothing without our status: what a team sets up so that no plan is merged unseen.

use super::process::{Daemon, Watching};
use super::{eventually, plan_of, pushed_shop, shop};
use crate::repository::Repository;

/// What Gitea says as long as a status is missing, or is no success.
const REFUSAL: &str = "Not all required status checks successful";

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_protected_branch_takes_what_has_a_plan_and_nothing_before() {
    let repository = Repository::create("daemon-protected").await;
    let (tree, first) = pushed_shop(&repository).await;
    let mut daemon = Daemon::start(&repository, &Watching::over_http(&repository)).await;
    daemon.settled(&repository, &first).await;
    let told = daemon.check(&["--register-webhook"]);
    assert!(told.contains("registered: Gitea calls"), "{told}");
    repository.protect("main", &["launchway/plan"]).await;
    daemon.stop();

    // As long as nobody says anything, nothing is merged.
    tree.git(&["checkout", "--quiet", "-b", "topic"]);
    let broken = tree.commit("deploy/web.yaml", "kind: DeploymentConfig\nkind: DeploymentConfig\n");
    tree.push_over_http("topic").await;
    let number = repository.open_pull("topic").await;
    let refusal = repository.refusal_to_merge(number).await;
    assert!(refusal.contains(REFUSAL), "{refusal}");

    // What cannot be read stays out.
    daemon.resume().await;
    let status = eventually("the plan is told", async || plan_of(&repository, &broken).await).await;
    assert!(matches!(&*status.state, "error" | "failure"), "{status:?}");
    let refusal = repository.refusal_to_merge(number).await;
    assert!(refusal.contains(REFUSAL), "{refusal}");

    // Put right, it is merged and deployed.
    tree.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let head = shop::commit_change(&tree);
    tree.push_over_http("+topic").await;
    let status = eventually("the plan is told", async || plan_of(&repository, &head).await).await;
    assert!(status.state == "success" && status.description.starts_with("merging it: dev: 1 deploy"), "{status:?}");
    let merged = repository.merge(number).await;
    let statuses = daemon.settled(&repository, &merged).await;
    assert!(statuses.iter().all(|status| status.state == "success"), "{statuses:#?}");
    assert_eq!((daemon.serving("dev").await, daemon.serving("production").await), ((2, 1), (2, 1)));
}
