//! A project as Keptn kept it in Git, made a repository for launchway.

use std::fs;
use std::path::Path;

use crate::support::daemon::{World, complaint};
use crate::support::git::GitFixture;

const SHIPYARD: &str = "\
apiVersion: spec.keptn.sh/0.2.3
kind: Shipyard
metadata: {name: shipyard-sockshop}
spec:
  stages:
  - name: dev
    sequences: [{name: delivery, tasks: [{name: test}, {name: evaluation}]}]
  - name: production
";

const OBJECTIVES: &str = "spec_version: '1.0'\nobjectives:\n- {sli: time, pass: [{criteria: ['<600']}]}\ntotal_score: {pass: 90%, warning: 75%}\n";

/// Of a service: what Keptn notes of it, what it is judged by, and what an executor needs, which is no declaration.
const SERVICE: [(&str, &str); 4] = [
    ("carts/metadata.yaml", "serviceName: carts\n"),
    ("carts/slo.yaml", OBJECTIVES),
    ("carts/prometheus/sli.yaml", "indicators: {time: 'p95{service=\"$SERVICE\"}'}\n"),
    ("carts/helm/carts/web.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: carts}\nspec: nothing\n"),
];

/// A project's repository in either layout.
fn keptn(has_branches: bool) -> GitFixture {
    let git = GitFixture::new();
    let own = [("shipyard.yaml", SHIPYARD), ("metadata.yaml", "projectName: sockshop\n")];
    git.push_files(&own);
    if has_branches {
        git.git(&["checkout", "--quiet", "-b", "dev"]);
        git.commit_files(&SERVICE);
        git.git(&["push", "--quiet", "origin", "dev"]);
        git.git(&["checkout", "--quiet", "main"]);
        git.git(&["branch", "--quiet", "-D", "dev"]); // as in a clone, in which it is a branch of `origin` alone
    } else {
        let files = SERVICE.map(|(path, text)| (format!(".keptn-stages/dev/{path}"), text));
        git.push_files(&files.each_ref().map(|(path, text)| (path.as_str(), *text)));
    }
    git
}

fn imported(world: &World, from: &Path, into: &Path) -> std::process::Output {
    let mut command = world.launchway();
    command.args(["migrate", "keptn"]).arg(from).arg("--into").arg(into);
    command.args(["--prometheus", "http://127.0.0.1:9090"]).output().unwrap()
}

#[test]
fn both_layouts_become_the_same_repository_which_is_planned_as_it_is() {
    let world = World::new(&[]);
    let mut shipyards = Vec::new();
    for has_branches in [true, false] {
        let git = keptn(has_branches);
        let from = if has_branches { git.work() } else { git.bare() };
        let into = world.git.path(if has_branches { "of-branches" } else { "of-folders" });
        let done = imported(&world, &from, &into);
        assert!(done.status.success(), "{}", complaint(&done));
        for told in
            ["dev: `helm`: charts are for an executor", "production: the stage has neither a branch nor a folder"]
        {
            assert!(complaint(&done).contains(told), "{}", complaint(&done));
        }
        assert!(into.join("keptn/dev/carts/helm/carts/web.yaml").exists());
        shipyards.push(fs::read_to_string(into.join("shipyard.yaml")).unwrap());
        let again = imported(&world, &from, &into);
        assert!(complaint(&again).contains("is not empty"), "{}", complaint(&again));
    }
    assert_eq!(shipyards[0], shipyards[1]);
    assert!(shipyards[0].contains("p95{service"), "{}", shipyards[0]);

    let files = ["launchway.yaml", "shipyard.yaml", "keptn/dev/carts/helm/carts/web.yaml"];
    let read = |file: &&str| fs::read_to_string(world.git.path("of-branches").join(file)).unwrap();
    let texts: Vec<String> = files.iter().map(read).collect();
    let files: Vec<(&str, &str)> = files.into_iter().zip(texts.iter().map(String::as_str)).collect();
    world.start();
    let commit = world.git.push_files(&files);
    let told = world.status(&commit, "launchway/plan", "success");
    assert!(told.contains("nothing to deploy"), "{told}");
}

#[test]
fn what_is_wrong_is_told_with_branch_file_and_line() {
    let world = World::new(&[]);
    let git = keptn(true);
    git.git(&["checkout", "--quiet", "-b", "dev", "origin/dev"]);
    git.commit_files(&[("carts/slo.yaml", "objectives:\n- sli: time\n  pas: []\n")]);
    git.git(&["checkout", "--quiet", "main"]);
    let done = imported(&world, &git.work(), &world.git.path("new"));
    assert_eq!(done.status.code(), Some(1));
    assert!(complaint(&done).contains("dev:carts/slo.yaml:3:3: the key `pas` is not known"), "{}", complaint(&done));
    assert!(!world.git.path("new").exists(), "nothing is written");
    let other = GitFixture::new();
    other.push_files(&[("README", "no shipyard\n")]);
    let done = imported(&world, &other.bare(), &world.git.path("new"));
    assert!(complaint(&done).contains("has no `shipyard.yaml`"), "{}", complaint(&done));
}
