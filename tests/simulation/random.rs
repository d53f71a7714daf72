//! Stories that nobody thought of: random commands, then everything heals, and the head must be what runs.
//!
//! `RANDOM_STORIES=5000` tells that many.

use launchway::testing::script;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// One line of a story. What leads to conflicts comes often: the same few images, deployments that hang, holds.
fn line() -> impl Strategy<Value = String> {
    let words = |options: &'static [&'static str]| prop::sample::select(options.to_vec());
    let stage = || words(&["", "", "", "", " stage=dev", " stage=production"]);
    let config = || words(&["web", "web", "web", "api"]);
    let image = words(&["image=a", "image=b", "image=a", "image=b", "image=c"]);
    let setting = words(&[
        "replicas=1",
        "replicas=2",
        "pre=Abort",
        "pre=Retry",
        "pre=",
        "post=Abort",
        "post=",
        "mid=Abort",
        "mid=",
        "strategy=Recreate",
        "strategy=",
        "paused=true",
        "paused=",
        "paused=",
    ]);
    let behaviour = (
        words(&["hang", "hang", "heal", "heal", "linger", "fail", "unknown"]),
        words(&[
            "shop-dev/web-",
            "shop-dev/web-",
            "shop-dev/web-2-hook",
            "shop-dev/web-test",
            "shop-production/web-",
            "api-",
        ]),
    );
    prop_oneof![
        2 => (config(), setting, stage()).prop_map(|(name, setting, stage)| format!("declare {name} {setting}{stage}")),
        1 => (words(&["red=1", "red=2"]), stage()).prop_map(|(data, stage)| format!("object ConfigMap colors {data} service=web{stage}\npush")),
        1 => (words(&["web", "api", "colors"]), stage()).prop_map(|(name, stage)| format!("remove {name}{stage}")),
        5 => behaviour.prop_map(|(verb, prefix)| match verb {
            "fail" => format!("fail {prefix} exit 1"),
            verb => format!("{verb} {prefix}"),
        }),
        10 => (config(), image, stage()).prop_map(|(name, image, stage)| format!("declare {name} {image}{stage}\npush")),
        6 => words(&["settle", "settle", "settle", "pass 1s", "pass 11m"]).prop_map(str::to_owned),
        3 => words(&["crash", "reboot", "finish", "finish\nsettle"]).prop_map(str::to_owned),
        3 => words(&["hold dev web x", "hold production * x", "release", "release", "sync"]).prop_map(str::to_owned),
        1 => words(&["down", "up", "up"]).prop_map(str::to_owned),
        2 => (words(&["cancel", "retry", "latest", "undo"]), words(&["dev/web", "production/web"])).prop_map(|(verb, dc)| format!("{verb} {dc}")),
    ]
}

/// How every story ends: all is well again, what failed may be deployed again, the head is brought up, and then what the files say.
const END: &str = "finish\nheal shop-\nrelease\nrelease dev/web\nrelease dev/api\nup\nsync\npass 11m\nfinish\npass 11m\npush\npass 11m\nfinish\npass 11m\nsync\npass 11m\ncheck\n";

/// Tells a story to its end.
async fn tell(lines: &[String]) -> launchway::error::Result<()> {
    let story = format!(
        "shipyard dev:deployment,test production\ntask test retries=1\ndeclare web image=a\n{}\n{END}",
        lines.join("\n")
    );
    let folder = crate::folder();
    script::play(&story, folder.path()).await.map(drop)
}

#[test]
fn the_head_is_what_runs_in_the_end() {
    let cases = std::env::var("RANDOM_STORIES").map_or(48, |cases| cases.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let told = TestRunner::new(config).run(&prop::collection::vec(line(), 1..30), |lines| {
        runtime.block_on(tell(&lines)).map_err(|failure| TestCaseError::fail(format!("{failure:#}")))
    });
    if let Err(error) = told {
        panic!("{error}");
    }
}

/// What failed, was taken back, and is declared again waits for a person: to say that all is well again is not enough.
#[tokio::test]
async fn what_was_quarantined_is_what_runs_once_a_person_lets_it() {
    let lines = [
        "declare web image=a\npush",
        "settle",
        "hang shop-dev/web-",
        "declare web image=b\npush",
        "pass 11m",
        "declare web image=a\npush",
        "declare web image=b\npush",
    ];
    tell(&lines.map(str::to_owned)).await.unwrap();
}
