use crate::manifest::shipyard::tests::stages;

/// Stands before what a case has to say: lines 6 to 10 of the file.
const STAGES: &str = "  - name: dev
    sequences:
    - {name: delivery, tasks: [{name: deployment}, {name: test}]}
    - {name: check, tasks: [{name: test}, {name: check}]}
    - {name: verify, tasks: [{name: mail}]}
";

/// The problems of a sequence that begins in line 11, without the file's name and the fields, and without errors.
fn warnings(sequence: &str) -> Vec<String> {
    let (shipyard, problems) = stages(&format!("{STAGES}    - {sequence}\n"));
    assert!(shipyard.is_some(), "{sequence}: {problems:?}");
    let shown = problems.iter().map(|problem| {
        let (place, rest) = problem.split_once(": warning: ").expect("a warning");
        let message = rest.split_once(": ").map_or(rest, |(_, message)| message);
        format!("{} {message}", place.trim_start_matches("shipyard.yaml:"))
    });
    shown.collect()
}

/// The only problem of a trigger of line 12, whose `event` stands in the column 22.
fn trigger(trigger: &str) -> String {
    let found = warnings(&format!("name: follow\n      triggeredOn: [{trigger}]\n      tasks: [{{name: mail}}]"));
    assert_eq!(found.len(), 1, "{trigger}: {found:?}");
    found[0].clone()
}

#[test]
fn triggers_that_wait_for_what_never_happens() {
    for (event, expected) in [
        (
            "deb.delivery.finished",
            "12:22 `deb.delivery.finished` never happens: there is no stage `deb` (did you mean `dev.delivery.finished`?)",
        ),
        ("other.delivery.finished", "12:22 `other.delivery.finished` never happens: there is no stage `other`"),
        (
            "dev.delivry.finished",
            "12:22 `dev.delivry.finished` never happens: the stage `dev` has no sequence `delivry`, and no such task (did you mean `dev.delivery.finished`?)",
        ),
        (
            "dev.tset.finished",
            "12:22 `dev.tset.finished` never happens: the stage `dev` has no sequence `tset`, and no such task (did you mean `dev.test.finished`?)",
        ),
        (
            "sh.keptn.event.dev.nothing.finished",
            "12:22 `dev.nothing.finished` never happens: the stage `dev` has no sequence `nothing`, and no such task",
        ),
        (
            "dev.check.finished",
            "12:22 `dev.check.finished` is the end of the sequence `check`, not of the task of that name",
        ),
        (
            "dev.delivery.started",
            "12:22 `dev.delivery.started` starts nothing: only `.finished` does (did you mean `dev.delivery.finished`?)",
        ),
        (
            "dev.delivery.triggered",
            "12:22 `dev.delivery.triggered` starts nothing: only `.finished` does (did you mean `dev.delivery.finished`?)",
        ),
        (
            "dev.test.finishd",
            "12:22 `dev.test.finishd` starts nothing: only `.finished` does (did you mean `dev.test.finished`?)",
        ),
        ("dev.delivery", "12:22 `dev.delivery` is no end of `delivery` (did you mean `dev.delivery.finished`?)"),
        ("git.tag.create", "12:22 `git.tag.create` is nothing that happens in Git (did you mean `git.tag.created`?)"),
        (
            "test.finished",
            "12:22 `test.finished` starts nothing: it says no stage, and is what executors tell of a task (did you mean `dev.test.finished`?)",
        ),
        (
            "test.triggered",
            "12:22 `test.triggered` starts nothing: it asks executors for a task, and launchway alone tells it (did you mean `dev.test.finished`?)",
        ),
        (
            "sh.keptn.event.tets.started",
            "12:22 `tets.started` starts nothing: it is what executors tell of a task that goes on (did you mean `dev.test.finished`?)",
        ),
        (
            "test.status.changed",
            "12:22 `test.status.changed` starts nothing: it is what executors tell of a task that goes on (did you mean `dev.test.finished`?)",
        ),
        (
            "evaluation.invalidated",
            "12:22 `evaluation.invalidated` starts nothing: nothing follows from what was made invalid (did you mean `dev.evaluation.finished`?)",
        ),
        (
            "dev.tset.triggered",
            "12:22 `dev.tset.triggered` starts nothing: it asks for the sequence that it names, and for no other (did you mean `dev.test.finished`?)",
        ),
        (
            "deb.delivery.started",
            "12:22 `deb.delivery.started` starts nothing: launchway alone tells how sequences get on, and their ends are `.finished` (did you mean `dev.delivery.finished`?)",
        ),
        (
            "image.finished",
            "12:22 `image.finished` starts nothing: it says no stage, and is what executors tell of a task (an end is `<stage>.<sequence>.finished`; what happens outside has a type such as `image.built`)",
        ),
        (
            "com.image.triggered",
            "12:22 `com.image.triggered` starts nothing: it asks for the sequence that it names, and for no other (an end is `<stage>.<sequence>.finished`; what happens outside has a type such as `image.built`)",
        ),
        (
            "dev..finished",
            "12:22 `dev..finished` never happens: the parts of an event are words with dots between them",
        ),
    ] {
        assert_eq!(trigger(&format!("{{event: {event}}}")), expected);
    }
    for event in [
        "dev.problem.open",
        "dev.verify.in-progress",
        "push",
        "dev.evaluation.finished",
        "ci.build.done",
        "dev.test.status.changed",
        "com.image.was.finished",
        "git.tag.created",
        "dev.git.pull-request.merged",
    ] {
        let found = warnings(&format!("{{name: follow, triggeredOn: [{{event: {event}}}], tasks: [{{name: mail}}]}}"));
        assert!(found.is_empty(), "{event}: {found:?}");
    }
    let twice = "{name: follow, triggeredOn: [{event: push}, {event: push}], tasks: [{name: mail}]}";
    assert_eq!(warnings(twice), ["11:51 `push` stands there twice; the sequence starts once"]);
}

#[test]
fn selectors_that_never_hold() {
    let on = |event: &str, selector: &str| format!("{{event: dev.{event}.finished, selector: {{{selector}}}}}");
    for (event, selector, expected) in [
        ("delivery", "match: {result: failed}", "12:71 the result of a sequence is `fail`; `failed` is read as that"),
        (
            "delivery",
            "match: {test.result: failed}",
            "12:71 the result of a sequence is `fail`; `failed` is read as that",
        ),
        ("delivery", "match: {result: passed}", "12:71 `passed` is never `result` (did you mean `pass`?)"),
        ("delivery", "match: {status: timedout}", "12:71 `timedout` is never `status` (did you mean `timedOut`?)"),
        (
            "delivery",
            "match: {test.status: pass}",
            "12:71 `pass` is never `test.status` (one of succeeded, errored, aborted, timedOut, unknown)",
        ),
        (
            "delivery",
            "match: {status: superseded}",
            "12:71 `superseded` is never `status` (one of succeeded, errored, aborted, timedOut, unknown)",
        ),
        (
            "delivery",
            "match: {tets.result: pass}",
            "12:71 `tets.result` is never there: the sequence `delivery` has no task `tets` (did you mean `test.result`?)",
        ),
        (
            "delivery",
            "match: {check.score: high}",
            "12:71 `check.score` is never there: the sequence `delivery` has no task `check`",
        ),
        (
            "test",
            "match: {release.result: pass}",
            "12:67 `release.result` is never there: the sequence `delivery`, `check` has no task `release`",
        ),
        ("delivery", "match: {reslut: pass}", "12:71 `reslut` cannot be selected by (did you mean `result`?)"),
        ("delivery", "match: {test: pass}", "12:71 `test` cannot be selected by (did you mean `test.result`?)"),
        (
            "delivery",
            "match: {color: red}",
            "12:71 `color` cannot be selected by (select by `result`, `status`, `<task>.result` or `<task>.status`)",
        ),
        (
            "delivery",
            "matchExpressions: [{key: result, operator: In, values: [fail, bad]}]",
            "12:125 `bad` is never `result` (one of pass, warning, fail)",
        ),
        (
            "delivery",
            "match: {result: pass}, matchExpressions: [{key: result, operator: NotIn, values: [pass]}]",
            "12:52 never holds: no `result` is all that is asked of it",
        ),
        (
            "delivery",
            "matchExpressions: [{key: test.result, operator: NotIn, values: [pass, warning, fail]}, {key: test.result, operator: Exists}]",
            "12:52 never holds: no `test.result` is all that is asked of it",
        ),
        (
            "delivery",
            "matchExpressions: [{key: test.uri, operator: DoesNotExist}, {key: test.uri, operator: In, values: [a]}]",
            "12:52 never holds: no `test.uri` is all that is asked of it",
        ),
        (
            "delivery",
            "match: {result: pass, test.result: fail}",
            "12:52 never holds: a sequence has failed where its task `test` has",
        ),
        (
            "delivery",
            "matchExpressions: [{key: result, operator: DoesNotExist}]",
            "12:52 never holds: no `result` is all that is asked of it",
        ),
        (
            "test",
            "matchExpressions: [{key: status, operator: DoesNotExist}]",
            "12:48 never holds: no `status` is all that is asked of it",
        ),
        (
            "delivery",
            "matchExpressions: [{key: result, operator: NotIn, values: [pass, warning, fail]}]",
            "12:52 never holds: no `result` is all that is asked of it",
        ),
        (
            "delivery",
            "match: {result: pass, status: aborted}",
            "12:52 never holds: nothing ends with such a `result` and `status` (whatever is not `succeeded` has the result `fail`)",
        ),
        (
            "delivery",
            "match: {result: fail}, matchExpressions: [{key: test.result, operator: NotIn, values: [fail]}, {key: test.status, operator: In, values: [errored, timedOut]}]",
            "12:52 never holds: nothing ends with such a `test.result` and `test.status` (whatever is not `succeeded` has the result `fail`)",
        ),
        (
            "test",
            "matchExpressions: [{key: result, operator: In, values: [warning]}, {key: status, operator: NotIn, values: [succeeded]}]",
            "12:48 never holds: nothing ends with such a `result` and `status` (whatever is not `succeeded` has the result `fail`)",
        ),
        (
            "delivery",
            "match: {test.status: aborted, result: warning}",
            "12:52 never holds: a sequence has failed where its task `test` has",
        ),
    ] {
        assert_eq!(trigger(&on(event, selector)), expected, "{selector}");
    }
    for (event, selector) in [
        ("delivery", "match: {result: fail, test.result: fail, deployment.result: pass, deployment.deploymentURI: x}"),
        (
            "delivery",
            "matchExpressions: [{key: test.uri, operator: NotIn, values: [a]}, {key: test.uri, operator: Exists}]",
        ),
        (
            "delivery",
            "matchExpressions: [{key: result, operator: NotIn, values: [pass]}, {key: status, operator: In, values: [timedOut, unknown]}]",
        ),
        ("test", "match: {result: fail, check.status: aborted}"),
        ("delivery", "match: {result: fail, status: aborted, test.result: pass}"),
        ("delivery", "match: {status: succeeded, test.result: fail}"),
        ("delivery", "matchExpressions: [{key: test.result, operator: DoesNotExist}]"),
        ("delivery", "matchExpressions: [{key: test.result, operator: NotIn, values: [pass, warning, fail]}]"),
        (
            "delivery",
            "match: {result: pass}, matchExpressions: [{key: test.result, operator: NotIn, values: [pass, warning]}]",
        ),
        ("evaluation", "match: {result: whatever}"),
    ] {
        let sequence = format!("{{name: follow, triggeredOn: [{}], tasks: [{{name: mail}}]}}", on(event, selector));
        assert!(warnings(&sequence).is_empty(), "{selector}: {:?}", warnings(&sequence));
    }
    let outside = "{name: follow, triggeredOn: [{event: problem.open, selector: {match: {result: failed, color: red}}}], tasks: [{name: mail}]}";
    assert!(warnings(outside).is_empty(), "what events from outside carry is their own");
}

#[test]
fn circles_that_nothing_leaves() {
    let circle = |first: &str, second: &str| {
        let on = |event: &str, selector: &str| {
            format!("triggeredOn: [{{event: {event}.finished, selector: {{{selector}}}}}]")
        };
        let again = on("dev.again", first);
        warnings(&format!(
            "{{name: follow, {again}, tasks: [{{name: mail}}]}}\n    - {{name: again, {}, tasks: [{{name: page}}]}}",
            on("dev.follow", second)
        ))
    };
    let told = |how: &str, leaves: &str, rounds: &str| {
        format!(
            "12:35 this comes round to itself where all {how}: dev.again → dev.follow → dev.again (a selector such as `result: {leaves}` leaves it; launchway ends it after {rounds})"
        )
    };
    let passes = |rounds: &str| vec![told("passes", "fail", rounds)];
    let fails = |rounds: &str| vec![told("fails", "pass", rounds)];
    let not_aborted = "matchExpressions: [{key: status, operator: NotIn, values: [aborted]}]";
    for (first, second, expected) in [
        ("", "", passes("one round")),
        ("match: {result: pass}", "", passes("one round")),
        ("match: {result: pass}", not_aborted, passes("ten rounds")),
        (not_aborted, not_aborted, passes("ten rounds")),
        ("match: {result: fail}", "", vec![]),
        ("", "match: {mail.uri: x}", vec![]),
        ("match: {result: fail}", "match: {result: fail}", fails("ten rounds")),
        ("match: {status: timedOut}", not_aborted, fails("ten rounds")),
        ("match: {result: fail}", "match: {result: fail, mail.uri: x}", vec![]),
    ] {
        assert_eq!(circle(first, second), expected, "{first} {second}");
    }
    let alone = "11:36 this comes round to itself where all passes: dev.follow → dev.follow (a selector such as `result: fail` leaves it; launchway ends it after one round)";
    for (event, selector, expected) in [
        ("dev.follow", "", &[alone][..]),
        ("dev.ask", "", &[alone]),
        ("dev.follow", "match: {result: fail}", &[]),
        ("dev.verify", "", &[]),
    ] {
        let sequence = format!(
            "{{name: follow, triggeredOn: [{{event: {event}.finished, selector: {{{selector}}}}}], tasks: [{{name: ask}}]}}"
        );
        assert_eq!(warnings(&sequence), expected, "{event} {selector}");
    }
}

#[test]
fn tasks_that_say_what_has_no_effect() {
    for (tasks, expected) in [
        ("[{name: a, condition: onFailure}]", &["11:35 `a` never runs: no task before it can have failed"][..]),
        ("[{name: a}, {name: b, condition: onFailure}]", &[]),
        ("[{name: a, holdSlot: false}]", &["11:35 has no effect: without `triggeredAfter` there is no pause"]),
        ("[{name: a, holdSlot: false, triggeredAfter: 5m}]", &[]),
        (
            "[{name: deployment, executors: [helm]}]",
            &[
                "11:44 has no effect: `deployment` is built in (with `deploymentstrategy: user_managed` executors deploy)",
            ],
        ),
        (
            "[{name: deployment, timeout: 5m, startTimeout: 1m, retries: 2}]",
            &[
                "11:44 has no effect: `deployment` is built in (strategies of deployment configs have `timeoutSeconds` and `activeDeadlineSeconds`, and the sequence a `timeout`)",
                "11:57 has no effect: `deployment` is built in (strategies of deployment configs have `timeoutSeconds` and `activeDeadlineSeconds`, and the sequence a `timeout`)",
                "11:75 has no effect: `deployment` is built in (hooks have `failurePolicy: Retry`, and `launchway rollout retry` tries a version again)",
            ],
        ),
        (
            "[{name: deployment, timeout: 5m, startTimeout: 1m, retries: 2, properties: {deploymentstrategy: user_managed}}]",
            &[],
        ),
        ("[{name: rollback, timeout: 5m, startTimeout: 1m, retries: 2, executors: [a]}]", &[]),
        ("[{name: rollback, timeout: 5m, properties: {deploymentstrategy: user_managed}}]", &[]),
        ("[{name: deployment, executors: [helm], properties: {deploymentstrategy: user_managed}}]", &[]),
        (
            "[{name: deployment, heartbeat: 1m}]",
            &[
                "11:44 has no effect: `deployment` is built in (with `deploymentstrategy: user_managed` executors deploy)",
            ],
        ),
        (
            "[{name: a, heartbeat: 5m, timeout: 5m}]",
            &["11:35 has no effect: the task is over by then, by its `timeout`"],
        ),
        ("[{name: a, heartbeat: 1m, timeout: 5m}]", &[]),
        ("[{name: deployment, properties: {deploymentstrategy: canary}}]", &[]),
        (
            "[{name: deployment, properties: {deploymentstrategy: blue-green}}]",
            &[
                "11:57 there is no strategy `blue-green`: each deployment config is deployed by its own (did you mean `blue_green`?)",
            ],
        ),
        (
            "[{name: deployment, properties: {deploymentstrategy: 1}}]",
            &[
                "11:57 there is no strategy `1`: each deployment config is deployed by its own (one of direct, blue_green, blue_green_service, canary, user_managed)",
            ],
        ),
        ("[{name: a, properties: {deploymentstrategy: whatever}}]", &[]),
        ("[{name: a, executors: [b, b]}]", &["11:50 `b` is named twice"]),
        ("[{name: evaluate}]", &["11:26 the task is called `evaluation`; `evaluate` is read as that"]),
        (
            "[{name: a, triggeredAfter: 10m}], timeout: 5m",
            &["11:58 never enough: the pauses before its tasks take as long"],
        ),
        ("[{name: a, triggeredAfter: 10m}], timeout: 11m", &[]),
    ] {
        assert_eq!(warnings(&format!("{{name: x, tasks: {tasks}}}")), expected, "{tasks}");
    }
}
