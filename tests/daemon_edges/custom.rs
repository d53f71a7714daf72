//! Deployers of people's own, which are scripts with `curl`, on real pods.

use crate::daemon_edges::survival::{SERVICE, careful_server, says, service_address};
use crate::support::daemon::{World, eventually};

/// What the script of the page about deployers defines, and waits less for here.
fn defined() -> String {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deployers.md")).unwrap();
    let from = page.find("api() {").unwrap();
    let until = page.find("\napi /scale").unwrap();
    let functions = page[from..until].replace("seq 60", "seq 600").replace("sleep 1 ", "sleep 0.1 ");
    let reach = r#"reach() { echo "$1" >> HERE/steps; while ! test -e HERE/"after-$1"; do sleep 0.05; done; }"#;
    format!("{functions}\n{reach}\n")
}

/// A world whose first version was brought up by `Custom`; `go` lets pods of later ones become ready.
fn served_by_one() -> (World, String) {
    let world = World::new(&[]);
    std::fs::write(world.git.path("go"), "").unwrap();
    world.start();
    let files = [("web.yaml", &*server(&world, "one", "exit 0", "type: Custom")), ("service.yaml", SERVICE)];
    world.deploy(&files, "success");
    let address = service_address(&world);
    eventually("version one answers", || says(&address, "one"));
    (world, address)
}

/// Two pods of a version, exchanged by a script under a strategy that has `customParams`.
fn server(world: &World, version: &str, script: &str, kind: &str) -> String {
    let here = world.git.path("").display().to_string();
    let script = format!("{}\n{script}", defined()).replace("HERE", here.trim_end_matches('/'));
    let file = world.git.path(&format!("deploy-{version}"));
    std::fs::write(&file, script).unwrap();
    let rolling = "rollingParams: {timeoutSeconds: 60, maxUnavailable: 0, maxSurge: 1}";
    let command = format!("[sh, {}]", file.display());
    let strategy = format!("{kind}, {rolling}, customParams: {{image: host, command: {command}}}");
    careful_server(world, &strategy, version).replace("replicas: 1", "replicas: 2")
}

fn push(world: &World, version: &str, script: &str, kind: &str) -> String {
    world.git.push_files(&[("web.yaml", &server(world, version, script, kind))])
}

fn reached(world: &World, step: &str) {
    eventually(step, || world.lines("steps").iter().any(|line| line == step));
}

fn go_on(world: &World, step: &str) {
    std::fs::write(world.git.path(&format!("after-{step}")), "").unwrap();
}

/// The pods that live, without the numbers of those of one version.
fn pods(world: &World) -> Vec<String> {
    let listed = world.json(&["get", "pods"]);
    let items = listed["items"].as_array().cloned().unwrap_or_default();
    let lives = items.iter().filter(|pod| matches!(pod["status"].as_str(), Some("Ready" | "Starting")));
    let name = |pod: &serde_json::Value| {
        let name = pod["name"].as_str().unwrap_or_default();
        name.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned()
    };
    let mut names: Vec<String> = lives.map(name).collect();
    names.sort();
    names
}

#[test]
fn a_deployer_exchanges_pods_step_by_step_and_goes_on_while_the_daemon_is_killed() {
    let (world, address) = served_by_one();
    let script = r#"
api | tee HERE/record > /dev/null
api /scale '{"new": 1}' > /dev/null || exit
settled
reach one
api /scale '{"new": 2, "old": 0}' > /dev/null || exit
settled
echo "all of it is $OPENSHIFT_DEPLOYMENT_NAME in $OPENSHIFT_DEPLOYMENT_NAMESPACE, not $LAUNCHWAY_API_TOKEN"
"#;
    let commit = push(&world, "two", script, "type: Custom");
    reached(&world, "one");
    assert_eq!(pods(&world), ["web-1-", "web-1-", "web-2-", "web-2-deploy"]);
    world.kill();
    assert!(says(&address, "one") || says(&address, "two"), "what is there serves without a daemon");
    go_on(&world, "one");
    world.start();
    world.status(&commit, "launchway/default", "success");
    assert_eq!(pods(&world), ["web-2-", "web-2-"]);
    eventually("version two answers", || says(&address, "two"));
    assert_eq!(world.lines("steps"), ["one"], "it ran once");
    let record: serde_json::Value = serde_json::from_str(&world.lines("record").concat()).unwrap();
    assert_eq!((&record["version"], &record["previous"]["version"]), (&2.into(), &1.into()));
    assert_eq!((&record["replicas"], &record["settled"]), (&2.into(), &true.into()));
    let printed = world.tell(&["logs", "dc/web"]);
    assert!(printed.contains("all of it is web-2 in shop-default, not ***"), "{printed}");
    assert_eq!(world.notes(&commit)["launchway/default/web/deployer"].0, "success");
}

#[test]
fn a_deployer_that_fails_is_quoted_on_the_commit_and_what_served_is_back() {
    let (world, address) = served_by_one();
    let script = r#"
api /scale '{"new": 2, "old": 0}' > /dev/null || exit
settled
echo customers complain
exit 65
"#;
    let commit = push(&world, "two", script, "type: Custom");
    let told = world.status(&commit, "launchway/default/web/deployer", "failure");
    assert!(told.contains("exit code 65") && told.contains("customers complain"), "{told}");
    let told = world.status(&commit, "launchway/default/web", "failure");
    assert!(told.contains("the new version is not what it should be") && told.contains("version 1 serves"), "{told}");
    eventually("version one is back", || says(&address, "one"));
    assert_eq!(pods(&world), ["web-1-", "web-1-"]);
}

#[test]
fn a_deployer_may_touch_its_own_deployment_alone_and_only_while_it_is_at_work() {
    let (world, _) = served_by_one();
    let script = r#"
cp /dev/null HERE/answers
told() { printf '%s %s\n' "$1" "$(api "$2" "$3" 2>/dev/null | sed 's/.*"detail":"\([^"]*\)".*/\1/')" >> HERE/answers; }
(LAUNCHWAY_API_TOKEN=wrong; told wrong "")
(LAUNCHWAY_API_TOKEN="${LAUNCHWAY_API_TOKEN%?????}AAAAA"; told forged "")
told many /scale '{"new": 3}'
told until /rollout '{"until": "50%"}'
told unknown /scale '{"third": 1}'
printf '%s' "$LAUNCHWAY_API_TOKEN" > HERE/token
printf '%s' "$LAUNCHWAY_API_SOCKET" > HERE/socket
curl -s --unix-socket "$LAUNCHWAY_API_SOCKET" http://localhost/api/v1/deployments > HERE/elsewhere
ls "$(dirname "$LAUNCHWAY_API_SOCKET")/.." > HERE/siblings
reach asked
"#;
    let commit = push(&world, "two", script, "type: Custom");
    reached(&world, "asked");
    let answers = world.lines("answers").join("\n");
    for expected in [
        "wrong the token of a deployer that is at work is needed",
        "forged the token of a deployer that is at work is needed",
        "many 3 pods are more than the 2 replicas",
        "until the strategy Custom exchanges no pods by itself",
        "unknown",
    ] {
        assert!(answers.contains(expected), "{expected}: {answers}");
    }
    assert!(world.lines("elsewhere").concat().contains("there is nothing at"), "{:?}", world.lines("elsewhere"));
    go_on(&world, "asked");
    world.status(&commit, "launchway/default", "success");
    let (token, socket) = (world.lines("token").concat(), world.lines("socket").concat());
    let late = std::process::Command::new("curl")
        .args([
            "-s",
            "--unix-socket",
            &socket,
            "-H",
            &format!("x-token: {token}"),
            "http://localhost/api/v1/deployment",
        ])
        .output()
        .unwrap();
    let late = String::from_utf8_lossy(&late.stdout).into_owned();
    assert!(late.contains("\"status\":401"), "{late}");
    let store = std::fs::read(world.state().join("store.db")).unwrap();
    assert!(!store.windows(token.len()).any(|part| part == token.as_bytes()), "the token is kept");
}

#[test]
fn the_deployer_of_the_example_takes_a_version_to_all_pods() {
    let (world, address) = served_by_one();
    let example = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples-repo/deployer/bin/launch"));
    let quick = example.unwrap().replace("PROVING = 10", "PROVING = 0");
    std::fs::write(world.git.path("launch"), quick).unwrap();
    let commit = push(&world, "two", "exec python3 HERE/launch", "type: Custom");
    world.status(&commit, "launchway/default", "success");
    assert_eq!(pods(&world), ["web-2-", "web-2-"]);
    eventually("version two answers", || says(&address, "two"));
    let printed = world.tell(&["logs", "dc/web"]);
    assert!(printed.contains("web-2 takes the place of web-1"), "{printed}");
    assert!(printed.contains("2 pods of web-2 serve"), "{printed}");
}

#[test]
fn a_person_who_cancels_ends_the_deployer_first() {
    let (world, address) = served_by_one();
    let script = r#"
trap 'echo told; echo over >> HERE/steps; exit 3' TERM
api /scale '{"new": 1, "old": 1}' > /dev/null || exit
settled
echo scaled >> HERE/steps
while :; do sleep 0.1; done
"#;
    let commit = push(&world, "two", script, "type: Custom");
    reached(&world, "scaled");
    world.tell(&["rollout", "cancel", "dc/web"]);
    world.status(&commit, "launchway/default", "cancelled");
    assert_eq!(world.lines("steps"), ["scaled", "over"]);
    assert_eq!(pods(&world), ["web-1-", "web-1-"]);
    assert!(says(&address, "one"));
}

#[test]
fn a_deployer_stops_a_rolling_exchange_on_the_way() {
    let (world, _) = served_by_one();
    let script = r#"
api /rollout '{"until": "50%"}' > /dev/null || exit
settled
reach half
"#;
    let commit = push(&world, "two", script, "type: Rolling");
    reached(&world, "half");
    assert_eq!(pods(&world), ["web-1-", "web-2-", "web-2-deploy"]);
    go_on(&world, "half");
    world.status(&commit, "launchway/default", "success");
    assert_eq!(pods(&world), ["web-2-", "web-2-"]);
}

/// A replication controller of a region that `web` deploys.
fn region(name: &str, version: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ReplicationController\nmetadata:\n  name: {name}\n  labels: \
         {{openshift.io/deployment-config.name: web}}\nspec:\n  replicas: 2\n  template:\n    metadata: {{labels: {{region: \
         {name}}}}}\n    spec:\n      terminationGracePeriodSeconds: 1\n      containers: [{{name: main, image: host, command: \
         [sh, -c, 'echo {version}; exec sleep 1000']}}]\n"
    )
}

#[test]
fn a_deployer_goes_through_regions_while_the_daemon_is_killed_and_all_go_back_where_one_fails() {
    let world = World::new(&[]);
    std::fs::write(world.git.path("go"), "").unwrap();
    world.start();
    let each = |asks: &str| {
        let script =
            format!("for region in east west; do\n{asks}\ndone\napi /scale '{{\"new\": 2}}' > /dev/null; settled");
        server(&world, "one", &script, "type: Custom")
    };
    let web = each("api /scale '{\"controller\": \"'$region'\", \"new\": 2}' > /dev/null || exit\nsettled");
    let files = [
        ("web.yaml", &*web),
        ("east.yaml", &*region("east", "a")),
        ("west.yaml", &*region("west", "a")),
        ("service.yaml", SERVICE),
    ];
    world.deploy(&files, "success");
    assert_eq!(pods(&world), ["east-1-", "east-1-", "web-1-", "web-1-", "west-1-", "west-1-"]);
    // One region changes; the daemon dies half-way.
    let half_way = r#"
api | tee HERE/record > /dev/null
api /scale '{"controller": "west", "new": 1}' > HERE/west
api /scale '{"controller": "east", "new": 1, "old": 1}' > /dev/null || exit
settled
reach one
api /scale '{"controller": "east", "new": 2, "old": 0}' > /dev/null || exit
settled
"#;
    assert_eq!(server(&world, "one", half_way, "type: Custom"), web, "only its script changes");
    let commit = world.git.push_files(&[("east.yaml", &region("east", "b"))]);
    reached(&world, "one");
    let there = pods(&world);
    assert_eq!(there, ["east-1-", "east-2-", "web-1-", "web-1-", "web-2-deploy", "west-1-", "west-1-"]);
    world.kill();
    go_on(&world, "one");
    world.start();
    world.status(&commit, "launchway/default", "success");
    assert_eq!(pods(&world), ["east-2-", "east-2-", "web-2-", "web-2-", "west-1-", "west-1-"]);
    let contexts: Vec<String> = world.notes(&commit).into_keys().collect();
    assert!(contexts.iter().all(|context| !context.contains("east")), "{contexts:?}");
    let record: serde_json::Value = serde_json::from_str(&world.lines("record").concat()).unwrap();
    let told = |index: usize| (&record["controllers"][index]["name"], &record["controllers"][index]["isNew"]);
    assert_eq!((told(0), told(1)), ((&"east".into(), &true.into()), (&"west".into(), &false.into())));
    assert!(world.lines("west").concat().contains("stays at version 1"), "{:?}", world.lines("west"));
    let described = world.tell(&["describe", "dc/web"]);
    assert!(described.contains("Controllers") && !described.contains("sleep 1000"), "{described}");
    let columns = |name: &str| described.lines().find(|line| line.trim_start().starts_with(name)).map(str::to_owned);
    let row: Vec<String> = columns("east").unwrap().split_whitespace().map(str::to_owned).collect();
    assert_eq!(row, ["east", "2", "2", "2", "2", "2", "Complete"], "{described}");
    assert!(world.tell(&["describe", "rc/east"]).contains("dc/web"));
    assert!(world.tell(&["get", "dc"]).contains("dc/web"));
    // Both change, and the second one fails: all go back.
    let fails = "api /scale '{\"controller\": \"east\", \"new\": 2, \"old\": 0}' > /dev/null || exit\nsettled\nexit 69";
    server(&world, "one", fails, "type: Custom");
    let commit = world.git.push_files(&[("east.yaml", &region("east", "c")), ("west.yaml", &region("west", "c"))]);
    world.status(&commit, "launchway/default", "failure");
    assert_eq!(pods(&world), ["east-2-", "east-2-", "web-2-", "web-2-", "west-1-", "west-1-"]);
    world.tell(&["scale", "rc/east", "--replicas", "1"]);
    eventually("one pod", || pods(&world).iter().filter(|pod| *pod == "east-2-").count() == 1);
}
