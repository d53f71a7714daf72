use super::*;

const TWO_STAGES: &str = "# ours
apiVersion: spec.keptn.sh/0.2.2
kind: Shipyard
metadata: {name: shipyard-sockshop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - name: deployment
      - name: evaluation # how it went
        properties: {timeframe: 10m}
  - name: hardening
";

const OBJECTIVES: &str = "spec_version: '1.0'
filter: {handler: ItemsController}
comparison: {compare_with: single_result}
objectives:
- sli: time
  pass: [{criteria: ['<=+10%', '<600']}]
- sli: errors
total_score: {pass: 90%, warning: 75%}
";

fn file(path: &str, content: &str) -> KeptnFile {
    KeptnFile { shown: format!("main:{path}"), ..written(path, content) }
}

fn sockshop(shipyard: &str, own: &[(&str, &str)], dev: &[(&str, &str)]) -> KeptnProject {
    let files = |files: &[(&str, &str)]| files.iter().map(|(path, text)| file(path, text)).collect::<Vec<_>>();
    let own = [vec![file(SHIPYARD, shipyard)], files(own)].concat();
    KeptnProject { own, stages: BTreeMap::from([("dev".to_owned(), files(dev))]) }
}

fn import(project: &KeptnProject, prometheus: Option<&str>) -> Imported {
    super::project(project, prometheus).unwrap_or_else(|problem| unreachable!("{problem}"))
}

const URL: Option<&str> = Some("http://prometheus:9090");

#[test]
fn objectives_of_services_become_those_of_the_stages_evaluations() {
    let sli = "indicators:\n  time: old\n  unused: up\n";
    let own_sli =
        "spec_version: '1.0'\nindicators:\n  time: 'x{service=\"$SERVICE\", h=\"$handler\", d=\"$DEPLOYMENT\"}'\n";
    let dev = [
        ("metadata.yaml", "stageName: dev\n"),
        ("carts/metadata.yaml", "serviceName: carts\n"),
        ("carts/slo.yaml", OBJECTIVES),
        ("carts/prometheus/sli.yaml", own_sli),
        ("carts/helm/carts.tgz", "?"),
    ];
    let project = sockshop(TWO_STAGES, &[("metadata.yaml", "projectName: sockshop\n"), (SLI, sli)], &dev);
    let imported = import(&project, URL);
    let expected = "# ours
apiVersion: spec.keptn.sh/0.2.2
kind: Shipyard
metadata: {name: shipyard-sockshop}
spec:
  stages:
  - name: dev
    sequences:
    - name: delivery
      tasks:
      - name: deployment
      - name: evaluation # how it went
        properties:";
    assert!(imported.shipyard.starts_with(expected), "{}", imported.shipyard);
    let shipyard = one(SHIPYARD, &imported.shipyard).unwrap().value;
    let properties = shipyard.pointer("/spec/stages/0/sequences/0/tasks/1/properties").unwrap();
    assert_eq!(
        (&properties["timeframe"], &properties["filter"]["handler"]),
        (&json!("10m"), &json!("ItemsController"))
    );
    assert_eq!(properties["objectives"][0]["sli"], "time");
    let query = "x{service=\"$SERVICE\", h=\"$handler\", d=\"$DEPLOYMENT\"}";
    assert_eq!(properties["prometheus"], json!({"url": "http://prometheus:9090", "queries": {"time": query}}));
    let expected = [
        "dev: `helm`: charts are for an executor, which finds them in Git; a `Deployment` is deployed by launchway itself",
        "dev: no `prometheus/sli.yaml` has a query for `errors`: events have to give its value",
        "dev: the query of `time` has `$DEPLOYMENT`, for which nothing stands here",
        "hardening: the stage has neither a branch nor a folder",
    ];
    assert_eq!(imported.notes, expected);
    let paths: Vec<&str> = imported.files.iter().map(|file| file.path.as_str()).collect();
    let expected = [
        "launchway.yaml",
        "shipyard.yaml",
        "keptn/dev/carts/slo.yaml",
        "keptn/dev/carts/prometheus/sli.yaml",
        "keptn/dev/carts/helm/carts.tgz",
        "keptn/prometheus/sli.yaml",
    ];
    assert_eq!(paths, expected);
    let described = String::from_utf8(imported.files[0].content.clone()).unwrap();
    assert!(described.contains("name: sockshop\n") && described.contains("keptn/**"), "{described}");
}

#[test]
fn a_stage_of_objectives_alone_gets_the_sequence_that_judges_them() {
    for (stage, at) in
        [("  - name: dev\n", 0), ("  - name: dev\n    sequences:\n    - name: check\n      tasks: [{name: test}]\n", 1)]
    {
        let shipyard = format!(
            "apiVersion: spec.keptn.sh/0.2.0\nkind: Shipyard\nmetadata: {{name: a}}\nspec:\n  stages:\n{stage}"
        );
        let imported = import(
            &sockshop(&shipyard, &[], &[("slo.yaml", OBJECTIVES), (SLI, "indicators: {time: a, errors: b}")]),
            URL,
        );
        let shipyard = one(SHIPYARD, &imported.shipyard).unwrap().value;
        let sequence = shipyard.pointer(&format!("/spec/stages/0/sequences/{at}")).unwrap();
        assert_eq!((&sequence["name"], &sequence["tasks"][0]["name"]), (&json!("evaluation"), &json!("evaluation")));
        assert_eq!(sequence["tasks"][0]["properties"]["prometheus"]["queries"], json!({"time": "a", "errors": "b"}));
    }
}

#[test]
fn what_cannot_be_taken_over_is_said_and_left_to_executors() {
    let slo = |limit: u32| format!("objectives: [{{sli: time, pass: [{{criteria: ['<{limit}']}}]}}]\n");
    let (one, other) = (slo(1), slo(2));
    let services = |files: &[(&'static str, &str)]| -> Vec<String> {
        let noted = [("a/metadata.yaml", "x: y"), ("b/metadata.yaml", "x: y")];
        let files: Vec<(&str, &str)> = noted.into_iter().chain(files.iter().copied()).collect();
        let imported = import(&sockshop(TWO_STAGES, &[], &files), None);
        assert_eq!(imported.shipyard, TWO_STAGES, "nothing is changed");
        imported.notes.into_iter().filter(|note| note.starts_with("dev: ")).collect()
    };
    let differ = |some: &str| {
        format!(
            "dev: not all services have the same objectives ({some} have some): none are taken over, and `evaluation` is left to an executor"
        )
    };
    assert_eq!(services(&[("a/slo.yaml", &one), ("b/slo.yaml", &other)]), [differ("a, b")]);
    assert_eq!(services(&[("a/slo.yaml", &one)]), [differ("a")]);
    let unasked =
        "dev: its objectives are taken over with `--prometheus URL`; without, `evaluation` is left to an executor";
    assert_eq!(services(&[("slo.yaml", &one), ("b/slo.yaml", &one)]), [unasked]);
    assert_eq!(services(&[]), [""; 0]);
}

#[test]
fn a_shipyard_of_0_1_is_migrated_on_the_way_and_the_project_gets_a_name() {
    let old = "apiVersion: spec.keptn.sh/0.1.7\nkind: Shipyard\nmetadata: {name: shipyard-shop}\nspec: {stages: [{name: dev, test_strategy: functional}]}\n";
    let imported =
        import(&sockshop(old, &[], &[("slo.yaml", OBJECTIVES), (SLI, "indicators: {time: a, errors: b}")]), URL);
    assert!(
        imported.shipyard.contains("artifact-delivery") && imported.shipyard.contains("sli: time"),
        "{}",
        imported.shipyard
    );
    let unnamed =
        "no `metadata.yaml` says what the project is called: events are to name `shop`, as launchway.yaml says";
    assert_eq!(imported.notes, [unnamed]);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    let with = |path: &'static str, text: &'static str| {
        let mut files = vec![("slo.yaml", OBJECTIVES), (SLI, "indicators: {time: a}")];
        files.retain(|(known, _)| *known != path);
        files.push((path, text));
        super::project(&sockshop(TWO_STAGES, &[], &files), URL).map(drop).unwrap_err().to_string()
    };
    for (path, text, expected) in [
        (
            "slo.yaml",
            "objectives:\n- sli: time\n  pas: []\n",
            "main:slo.yaml:3:3: error: objectives[0].pas: the key `pas` is not known",
        ),
        (
            "slo.yaml",
            "objectives:\n- sli: time\n  pass: [{criteria: [fast]}]\n",
            "main:slo.yaml:3:22: error: objectives[0].pass[0].criteria[0]: `fast` is no",
        ),
        (
            "slo.yaml",
            "spec_version: '2.0'\nobjectives: [{sli: a}]\n",
            "main:slo.yaml:1:15: error: spec_version: this version",
        ),
        ("slo.yaml", "- a\n", "main:slo.yaml:1:1: error: must be a mapping with `objectives`"),
        ("slo.yaml", "a: [", "main:slo.yaml:1:"),
        (
            SLI,
            "indicators:\n  time: 5\n",
            "main:prometheus/sli.yaml:2:9: error: indicators.time: must be text, a query",
        ),
        (SLI, "indicator: {}\n", "main:prometheus/sli.yaml:1:1: error: indicators: must be a mapping"),
    ] {
        let problem = with(path, text);
        assert!(problem.starts_with(expected), "{text}: {problem}");
    }
    let shipyard =
        super::project(&sockshop("kind: Shipyard\nspec:\n  stages: [{name: Dev}]\n", &[], &[]), None).unwrap_err();
    assert!(shipyard.to_string().starts_with("main:shipyard.yaml:"), "{shipyard}");
    let url =
        super::project(&sockshop(TWO_STAGES, &[], &[("slo.yaml", OBJECTIVES)]), Some("prometheus:9090")).unwrap_err();
    assert!(url.to_string().contains("must begin with http:// or https://"), "{url}");
}
