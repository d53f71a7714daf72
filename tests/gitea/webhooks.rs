//! Deliveries of a real Gitea for real pushes.

use crate::receiver::{Receiver, SECRET};
use crate::repository::Repository;
use crate::work_tree::WorkTree;

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_push_over_http_is_accepted() {
    let repository = Repository::create("hook-http").await;
    let mut receiver = Receiver::start().await;
    let (tree, _) = receiver.watch(&repository).await;
    let before = tree.head();
    let after = tree.commit("app.py", "print('hello')\n");
    tree.push_over_http("main").await;

    let answered = receiver.next().await;
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(answered.body["result"], "accepted");
    assert_eq!(answered.body["event"], "push");
    assert_eq!(answered.body["ref"], "refs/heads/main");
    assert_eq!(answered.body["before"], before);
    assert_eq!(answered.body["after"], after);
    assert_eq!(receiver.looks(), 2);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_push_over_ssh_with_a_deploy_key_is_accepted() {
    let repository = Repository::create("hook-ssh").await;
    let mut receiver = Receiver::start().await;
    repository.add_hook(&receiver.url, SECRET, "json").await;
    let tree = WorkTree::create(&repository);
    let (key, public_key) = tree.make_key();
    repository.add_deploy_key(&public_key).await;
    let head = tree.commit("README.md", "a shop\n");
    tree.push_over_ssh(&key, "main").await;

    // A new branch is told twice, in no certain order.
    let answers = [receiver.next().await, receiver.next().await];
    let of_push = answers.iter().find(|answered| answered.body["event"] == "push").unwrap();
    let of_create = answers.iter().find(|answered| answered.body["event"] == "create").unwrap();
    assert_eq!((&of_push.body["result"], &of_push.body["after"]), (&"accepted".into(), &head.into()));
    assert_eq!((&of_create.body["result"], &of_create.body["ref"]), (&"ignored".into(), &"refs/heads/main".into()));
    assert_eq!(receiver.looks(), 1);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_wrong_or_missing_secret_is_refused() {
    for (name, secret) in [("hook-wrong-secret", "known to nobody"), ("hook-without-secret", "")] {
        let repository = Repository::create(name).await;
        let mut receiver = Receiver::start().await;
        repository.add_hook(&receiver.url, secret, "json").await;
        repository.first_push().await;
        let answered = receiver.next().await;
        assert_eq!(answered.status, 401, "{answered:?}");
        assert_eq!(receiver.looks(), 0);
    }
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_form_is_refused_with_what_to_choose_instead() {
    let repository = Repository::create("hook-form").await;
    let mut receiver = Receiver::start().await;
    repository.add_hook(&receiver.url, SECRET, "form").await;
    repository.first_push().await;
    let answered = receiver.next().await;
    assert_eq!(answered.status, 415, "{answered:?}");
    assert!(answered.body["detail"].as_str().unwrap().contains("application/json"));
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn other_branches_tags_and_deletions_are_ignored() {
    let repository = Repository::create("hook-others").await;
    let mut receiver = Receiver::start().await;
    let (tree, _) = receiver.watch(&repository).await;
    tree.git(&["tag", "v1"]);
    for (refspec, deliveries, reference) in [
        ("main:refs/heads/next", 2, "refs/heads/next"),
        (":refs/heads/next", 1, "refs/heads/next"),
        ("v1", 2, "refs/tags/v1"),
        (":refs/tags/v1", 2, "refs/tags/v1"),
    ] {
        tree.push_over_http(refspec).await;
        for _ in 0..deliveries {
            let answered = receiver.next().await;
            assert_eq!((answered.status, &answered.body["result"]), (200, &"ignored".into()), "{answered:?}");
            assert_eq!(answered.body["ref"], reference, "{answered:?}");
        }
    }
    assert_eq!(receiver.looks(), 1);
}

#[tokio::test]
#[ignore = "starts a Gitea, which takes minutes to build"]
async fn a_test_delivery_is_accepted() {
    let repository = Repository::create("hook-test").await;
    let mut receiver = Receiver::start().await;
    let (tree, hook) = receiver.watch(&repository).await;
    repository.test_hook(hook).await;
    let answered = receiver.next().await;
    assert_eq!((answered.status, &answered.body["result"]), (200, &"accepted".into()), "{answered:?}");
    assert_eq!(answered.body["before"], answered.body["after"]);
    assert_eq!(answered.body["after"], tree.head());
}
