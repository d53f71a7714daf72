//! Verbs where several repositories are watched that declare the same names.

use serde_json::Value;

use crate::daemon_edges::verbs::{assert_refused, web};
use crate::support::daemon::{World, complaint, eventually, repository};
use crate::support::git::GitFixture;

/// Two repositories that both declare `web`, and a daemon that has deployed them.
struct Two {
    shop: World,
    bank: GitFixture,
}

impl Two {
    fn deployed() -> Self {
        let two = Self { shop: World::new(&[]), bank: GitFixture::new() };
        let bare = |git: &GitFixture| git.bare().display().to_string();
        let both = repository("shop", &bare(&two.shop.git), &[]) + &repository("bank", &bare(&two.bank), &[]);
        two.shop.configure(&both);
        for git in [&two.shop.git, &two.bank] {
            git.push_files(&[("web.yaml", &web("1"))]);
        }
        two.shop.start();
        for name in ["shop", "bank"] {
            eventually("a deployment", || two.serving(name) == 1);
        }
        two
    }

    fn config(&self, repository: &str) -> Value {
        self.shop.json(&["get", "dc", "-r", repository])["items"][0].clone()
    }

    fn serving(&self, repository: &str) -> Value {
        self.config(repository)["serving"]["version"].clone()
    }

    fn held(&self, repository: &str) -> Vec<Value> {
        self.shop.json(&["get", "holds", "-r", repository])["items"].as_array().unwrap().clone()
    }

    /// What a verb says that is typed in bank's work tree, and its exit code.
    fn in_bank(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.shop.launchway().current_dir(self.bank.work()).args(arguments).output().unwrap();
        (output.status.code(), complaint(&output))
    }

    fn done_in_bank(&self, arguments: &[&str]) -> String {
        let (code, told) = self.in_bank(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {told}");
        told
    }
}

#[test]
fn what_is_held_in_one_repository_is_not_released_from_the_work_tree_of_another() {
    let two = Two::deployed();
    two.shop.tell(&["hold", "dc/web", "-r", "shop", "--reason", "not now"]);
    let waiting = two.shop.git.push_files(&[("web.yaml", &web("2"))]);
    eventually("the push waits", || two.shop.notes(&waiting).values().any(|(_, said)| said.contains("not now")));
    let hold = two.held("shop")[0].clone();
    assert_eq!((&hold["repository"], two.held("bank").len()), (&"shop".into(), 0), "{hold:#}");

    let (code, told) = two.in_bank(&["release", "dc/web", "--yes"]);
    assert!(code == Some(1) && told.contains("there is no hold `dc/web` in `bank`"), "{told}");
    let (code, told) = two.in_bank(&["release", "web", "--yes"]);
    assert!(code == Some(1) && told.contains("in `bank`"), "{told}");
    two.done_in_bank(&["hold", "dc/web", "--reason", "bank's own"]);
    assert_eq!(two.held("bank").len(), 1);
    two.done_in_bank(&["release", "--all", "--yes"]);
    assert_eq!((two.held("bank").len(), two.held("shop")), (0, vec![hold.clone()]));
    assert_eq!(two.serving("shop"), 1);

    let id = hold["id"].as_str().unwrap();
    let (code, _) = two.in_bank(&["release", id, "-r", "bank", "--yes"]);
    assert_eq!(code, Some(1), "what is named counts, also for an id");
    two.done_in_bank(&["release", id, "--yes"]);
    eventually("the push goes on", || two.serving("shop") == 2);

    for name in ["shop", "bank"] {
        two.shop.tell(&["hold", "-r", name, "--reason", "both"]);
    }
    two.shop.tell(&["release", "--all", "-s", "default", "--yes"]);
    assert_eq!((two.held("shop").len(), two.held("bank").len()), (1, 1), "they are of more than that stage");
    two.shop.tell(&["release", "--all", "--yes"]);
    assert_eq!(two.held("shop").len() + two.held("bank").len(), 0, "outside of all work trees it means all");
}

#[test]
fn a_sync_that_finds_nothing_new_is_shown_and_one_that_fails_is_none() {
    let world = World::new(&[]);
    world.git.push_files(&[("web.yaml", &web("1"))]);
    world.start();
    let times = || {
        let list = world.json(&["repository", "list"]);
        ["syncedAt", "polledAt"].map(|key| list["items"][0][key].as_str().unwrap_or_default().to_owned())
    };
    eventually("it was looked at", || !times()[1].is_empty());
    let [synced, looked] = times();
    eventually("it was looked at again", || {
        world.tell(&["sync", "shop"]);
        times()[1] > looked
    });
    let [still, looked] = times();
    assert_eq!(still, synced, "there was no news");
    let heads: Vec<String> =
        world.tell(&["repository", "list"]).lines().next().unwrap().split_whitespace().map(str::to_owned).collect();
    assert!(heads.contains(&"CHANGED".to_owned()) && heads.contains(&"SYNCED".to_owned()), "{heads:?}");

    std::fs::rename(world.git.bare(), world.git.root().join("elsewhere")).unwrap();
    world.run(&["sync", "shop"]);
    eventually("the problem is told", || world.json(&["repository", "list"])["items"][0]["problem"].is_string());
    assert_eq!(times()[1], looked, "nothing was found out");
}

#[test]
fn verbs_take_the_repository_of_the_work_tree_that_they_are_typed_in() {
    let two = Two::deployed();
    two.done_in_bank(&["rollout", "latest", "dc/web"]);
    eventually("bank's second version", || two.serving("bank") == 2);
    two.done_in_bank(&["scale", "dc/web", "--replicas", "2"]);
    assert_eq!((&two.config("bank")["desired"], &two.config("shop")["desired"]), (&2.into(), &1.into()));
    assert!(two.done_in_bank(&["rollout", "status", "dc/web"]).contains("web-2"));
    assert!(two.done_in_bank(&["history", "dc/web"]).contains("version 2 serves"));
    assert!(two.done_in_bank(&["describe", "dc/web"]).contains("bank"));
    assert!(two.done_in_bank(&["why", "dc/web"]).contains("bank/default/web"));
    let (_, told) = two.in_bank(&["rollout", "cancel", "dc/web"]);
    assert!(told.contains("#2 complete"), "{told}");
    let (code, told) = two.in_bank(&["rollout", "latest", "dc/web", "-r", "shop"]);
    assert_eq!(code, Some(0), "{told}");
    eventually("shop's second version", || two.serving("shop") == 2);

    two.shop.git.push_files(&[("cart.yaml", &web("1").replace("web", "cart"))]);
    eventually("only shop has a cart", || {
        two.shop.json(&["get", "dc", "cart"])["items"].as_array().is_some_and(|found| found.len() == 1)
    });
    let away = "no deployment config `cart` in `bank`";
    for verb in [&["rollout", "latest"][..], &["rollout", "cancel"], &["why"], &["scale", "--replicas", "2"]] {
        let (code, told) = two.in_bank(&[verb, &["dc/cart"]].concat());
        assert!(code == Some(1) && told.contains(away), "{verb:?}: {told}");
    }
    two.shop.tell(&["why", "dc/cart"]);
    assert_refused(&two.shop, &["rollout", "latest", "dc/web"], 2, &["-r bank -s default", "-r shop -s default"]);
}

#[test]
fn lists_are_of_the_repository_that_is_named_and_of_none_that_is_not_watched() {
    let two = Two::deployed();
    for kind in ["dc", "svc", "pods", "runs", "revisions", "repos", "holds"] {
        let arguments = ["get", kind, "-r", "nosuch"];
        assert_refused(&two.shop, &arguments, 1, &["there is no repository `nosuch`", "bank, shop"]);
    }
    for verb in [&["history"][..], &["events"], &["status"], &["release", "--all"], &["logs", "dc/web"]] {
        let arguments = [verb, &["-r", "nosuch"]].concat();
        assert_refused(&two.shop, &arguments, 1, &["there is no repository `nosuch`", "bank, shop"]);
    }

    let lines = |arguments: &[&str]| two.shop.tell(arguments).lines().map(str::to_owned).collect::<Vec<_>>();
    let all = lines(&["get", "dc"]);
    assert!(all[0].contains("REPOSITORY") && all.len() == 3, "{all:#?}");
    assert!(all[1].contains("bank") && all[2].contains("shop"), "{all:#?}");
    assert!(lines(&["history"])[0].contains("REPOSITORY"));
    for verb in [&["get", "dc"][..], &["history"], &["get", "runs"]] {
        let one = lines(&[verb, &["-r", "bank"]].concat());
        assert!(!one[0].contains("REPOSITORY") && one.len() > 1, "{one:#?}");
    }

    let events = |more: &[&str]| {
        let list = two.shop.json(&[&["events"], more].concat())["items"].as_array().unwrap().clone();
        list.into_iter().map(|event| event["number"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let (bank, shop) = (events(&["-r", "bank"]), events(&["-r", "shop"]));
    assert!(!bank.is_empty() && !shop.is_empty());
    let mut both = [bank, shop].concat();
    both.sort_unstable();
    assert_eq!(both, events(&[]), "each is of one");
}
