use serde_json::Value;

use super::*;
use crate::manifest::object::{Declarations, Source};
use crate::manifest::stage_context::StageContext;
use crate::manifest::yaml;

/// What a file's only deployment config is compared by.
fn content(text: &str) -> Value {
    let reading = yaml::read(text.as_bytes());
    assert_eq!(reading.errors, [], "{text}");
    let mut declarations = Declarations::default();
    for document in &reading.documents {
        declarations.add(&Source::new("web.yaml", document, &StageContext::nowhere(), None));
    }
    let errors: Vec<_> = declarations.problems.iter().filter(|problem| problem.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    let mut content = declarations.contents.remove(0);
    content["kind"] = Value::Null;
    content["apiVersion"] = Value::Null;
    content
}

fn migrated(text: &str) -> Migrated {
    let migrated = deployment_configs("web.yaml", text).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
    let again = deployment_configs("web.yaml", &migrated.text).expect("there is nothing to do");
    assert_eq!((&again.text, again.names.len()), (&migrated.text, 0));
    migrated
}

const TEMPLATE: &str = "  template: # pods
    metadata:
      labels: {app: web} # for the service
    spec:
      containers: [{name: web, image: 'git:web'}, {name: log, image: 'git:log'}]
";

fn config(spec: &str) -> String {
    format!("# head\napiVersion: v1\nkind: DeploymentConfig\nmetadata:\n  name: web\nspec:\n{spec}{TEMPLATE}")
}

#[test]
fn what_moves_takes_its_comments_along() {
    let text = config(
        "  replicas: 2 # two
  selector: # which
    # by name
    app: web # mine
  triggers:
  - type: ConfigChange
  strategy:
    type: Rolling # slowly
    rollingParams:
      # a lot
      maxSurge: 50% # half
      # before
      pre:
        # always
        failurePolicy: Abort # or not
        execNewPod: {command: [bin/migrate], containerName: web}
      timeoutSeconds: 60
",
    );
    let expected = "# head
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations:
    launchway.dev/hooks: |
      # before
      pre:
        # always
        failurePolicy: Abort # or not
        execNewPod: {command: [bin/migrate], containerName: web}
spec:
  replicas: 2 # two
  selector: # which
    matchLabels:
      # by name
      app: web # mine
  strategy:
    type: RollingUpdate # slowly
    rollingUpdate:
      # a lot
      maxSurge: 50% # half
      maxUnavailable: 0
";
    let migrated = migrated(&text);
    assert!(migrated.text.starts_with(expected), "{}", migrated.text);
    assert!(migrated.text.ends_with(&format!("{TEMPLATE}  progressDeadlineSeconds: 60\n")), "{}", migrated.text);
    assert!(migrated.notes.is_empty(), "{:?}", migrated.notes);
}

#[test]
fn a_deployment_means_what_the_deployment_config_meant() {
    let hook = "{failurePolicy: Retry, execNewPod: {command: [a], containerName: web}}";
    let image = "{type: ImageChange, imageChangeParams: {automatic: true, containerNames: [log], from: {kind: ImageStreamTag, name: 'a:1'}}}";
    let table = [
        String::new(),
        "  replicas: 3\n  minReadySeconds: 5\n  revisionHistoryLimit: 2\n  paused: true\n".to_owned(),
        "  triggers: []\n".to_owned(),
        "  triggers: ~\n".to_owned(),
        format!("  triggers: [{{type: ConfigChange}}, {image}]\n"),
        format!("  triggers: [{image}]\n").replace("true", "false"),
        "  triggers: [{type: Manual}]\n".to_owned(),
        "  strategy: {type: Recreate}\n".to_owned(),
        format!("  strategy: {{type: Recreate, recreateParams: {{timeoutSeconds: 9, mid: {hook}}}}}\n"),
        format!(
            "  strategy:\n    activeDeadlineSeconds: 900\n    rollingParams: {{pre: {hook}, post: {hook}, intervalSeconds: 3}}\n"
        ),
        "  strategy:\n    rollingParams:\n      maxUnavailable: 0\n".to_owned(),
        "  strategy:\n    rollingParams:\n      maxUnavailable: 1\n      maxSurge: 0\n".to_owned(),
        "  strategy:\n    rollingParams:\n".to_owned(),
        "  strategy: {}\n".to_owned(),
        format!(
            "  strategy:\n    type: Canary\n    canaryParams:\n      # slowly\n      steps: [{{weight: 10, pause: 5m}}]\n      maxSurge: 1\n      pre: {hook}\n"
        ),
        format!(
            "  strategy:\n    type: BlueGreen\n    blueGreenParams:\n      keep: 5m\n      timeoutSeconds: 7\n      analysis: {hook}\n"
        ),
        "  strategy:\n    type: AB\n    abParams: {weight: 20}\n".to_owned(),
        format!("  strategy:\n    lifecycle:\n      pre: {hook}\n"),
        "  selector: {app: web}\n".to_owned(),
    ];
    for spec in table {
        let text = config(&spec);
        let migrated = migrated(&text);
        assert_eq!(content(&migrated.text), content(&text), "{text}\n{}", migrated.text);
    }
}

#[test]
fn json_lists_and_templates_are_migrated_in_their_place() {
    let json = "{\n  \"apiVersion\": \"apps.openshift.io/v1\",\n  \"kind\": \"DeploymentConfig\",\n  \"metadata\": {\n    \"name\": \"web\"\n  },\n  \"spec\": {\n    \"strategy\": {\"type\": \"Rolling\", \"rollingParams\": {\"post\": {\"failurePolicy\": \"Abort\", \"execNewPod\": {\"command\": [\"a\"]}}}},\n    \"selector\": {\"app\": \"web\"},\n    \"template\": {\"metadata\": {\"labels\": {\"app\": \"web\"}}, \"spec\": {\"containers\": [{\"name\": \"web\", \"image\": \"git:web\"}]}}\n  },\n  \"status\": {}\n}\n";
    let once = migrated(json);
    assert!(serde_json::from_str::<Value>(&once.text).is_ok(), "{}", once.text);
    assert_eq!(content(&once.text), content(json), "{}", once.text);
    let others = "apiVersion: v1\nkind: Service # mine\nmetadata: {name: web}\n---\n";
    let list = format!(
        "{others}apiVersion: v1\nkind: List\nitems:\n- {}",
        config("").replace('\n', "\n  ").trim_end().trim_start_matches("# head\n  ")
    );
    let two = migrated(&format!("{list}\n---\n{}", config("  test: true\n")));
    assert!(two.text.starts_with(others), "{}", two.text);
    assert_eq!(
        (two.names.as_slice(), two.text.matches("kind: Deployment\n").count()),
        (["web".to_owned(), "web".to_owned()].as_slice(), 2)
    );
    assert_eq!(two.notes, ["web: `test: true` has no counterpart: scale it to zero instead"]);
}

#[test]
fn what_services_select_pods_by_stays() {
    let service = |by: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{selector: {{{by}}}, ports: [{{port: 80}}]}}\n---\n"
        )
    };
    let labels = |text: &str| -> Vec<String> {
        let lines = migrated(text).text;
        lines.lines().filter(|line| line.contains("deploymentconfig")).map(|line| line.trim().to_owned()).collect()
    };
    for (by, is_labelled) in [
        ("deploymentconfig: web", true),
        ("name: web, deploymentconfig: web", true),
        ("deploymentconfig: web-2", false),
        ("app: web", false),
    ] {
        let found = labels(&format!("{}{}", service(by), config("")));
        let has_label = found.iter().any(|line| line.starts_with("labels: {app: web, deploymentconfig: web}"));
        assert_eq!(has_label, is_labelled, "{by}: {found:?}");
    }
}

#[test]
fn only_comments_that_are_gone_are_told() {
    let strategy = "  strategy: # gone
    # the kind
    type: Canary # slowly
    canaryParams:
      steps: [{weight: 10}] # a few
      pre: {failurePolicy: Abort, execNewPod: {command: [sh, -c, 'exit # 1']}} # first
";
    let gone = ["the comment `# gone` stood at something that is gone"];
    let in_lines = config(strategy);
    let in_one = in_lines.replace("metadata:\n  name: web\nspec:", "metadata: {name: web}\nspec:");
    for (text, notes) in [(in_lines, gone), (in_one, gone)] {
        assert_eq!(migrated(&text).notes, notes, "{}", migrated(&text).text);
    }
    let in_brackets = "  strategy: {type: Recreate, recreateParams: {pre: {failurePolicy: Abort, execNewPod: {command: [sh, -c, 'a # b']}}}}\n";
    assert_eq!(migrated(&config(in_brackets)).notes, Vec::<String>::new());
}

#[test]
fn what_cannot_be_migrated_is_refused_or_told() {
    let refused = |text: &str| deployment_configs("web.yaml", text).expect_err(text).to_string();
    let old = refused(&config("  controllerTemplate: {}\n"));
    assert!(old.contains("words of a proposal"), "{old}");
    let older = refused("apiVersion: v1\nkind: DeploymentConfig\nid: web\ntemplate: {controllerTemplate: {}}\n");
    assert!(older.starts_with("web.yaml:4:11: error: this is in the words of a proposal"), "{older}");
    let shared = refused(&config("  selector: &s {app: web}\n  note: *s\n"));
    assert!(shared.starts_with("web.yaml:7:"), "{shared}");
    let left = migrated(&config("  strategy: {type: Recreate, rollingParams: {maxSurge: 1}}\n"));
    assert_eq!(left.notes, ["web: `spec.strategy.rollingParams` had no effect, and is gone"]);
    let gone = migrated(&config(
        "  triggers: [{type: ImageChange, imageChangeParams: {containerNames: [db], from: {name: 'a:1'}}}]\n",
    ));
    assert!(gone.notes[0].contains("no container `db`"), "{:?}", gone.notes);
}

#[test]
fn annotations_that_had_no_effect_get_none() {
    let annotated = |annotations: &str| {
        config("").replacen("  name: web\n", &format!("  name: web\n  annotations:\n{annotations}"), 1)
    };
    let hook = "pre: {failurePolicy: Abort, execNewPod: {command: [a]}}";
    let table = [
        ("launchway.dev/hooks", hook),
        ("launchway.dev/strategy", "type: Canary"),
        ("launchway.dev/triggers", "[]"),
        ("image.openshift.io/triggers", "[]"),
    ];
    for (name, text) in table {
        for more in ["", "    mine: x # kept\n"] {
            let before = annotated(&format!("    {name}: '{text}'\n{more}"));
            let migrated = migrated(&before);
            assert_eq!(migrated.notes, [format!("web: the annotation `{name}` had no effect, and is gone")]);
            assert!(!migrated.text.contains(name) && migrated.text.contains(more), "{}", migrated.text);
            let meant = if more.is_empty() { config("") } else { annotated(more) };
            assert_eq!(content(&migrated.text), content(&meant), "{name}");
        }
    }
    let followed = migrated(&annotated("    launchway.dev/trigger-on: configmaps\n"));
    assert!(followed.notes.is_empty() && followed.text.contains("trigger-on: configmaps"), "it has an effect on both");
}

#[test]
fn what_would_be_refused_afterwards_is_not_written() {
    let refused = |text: &str| deployment_configs("web.yaml", text).expect_err(text).to_string();
    let other = format!("{}---\n", config("").replace("name: web\nspec", "name: other\nspec"));
    let lines = u32::try_from(other.matches('\n').count()).unwrap_or_default();
    for (spec, line, expected) in [
        ("  strategy:\n    type: Recreate\n    recreateParams:\n      maxSurge: 1\n", 10, "`maxSurge`"),
        ("  strategy:\n    type: Recreate\n    recreateParams:\n      foo: 1\n", 10, "`foo`"),
        ("  strategy:\n    type: Rolling\n    rollingParams: {foo: 1}\n", 9, "`foo`"),
        (
            "  strategy:\n    recreateParams: {}\n    type: Recreate\n    lifecycle:\n      pre: {failurePolicy: Abort, x: 1, \
             execNewPod: {command: [a], containerName: web}}\n",
            11,
            "`x`",
        ),
    ] {
        let told = refused(&config(spec));
        assert!(told.starts_with(&format!("web.yaml:{line}:")) && told.contains(expected), "{told}");
        let told = refused(&(other.clone() + &config(spec)));
        assert!(told.starts_with(&format!("web.yaml:{}:", line + lines)), "{told}");
    }
    // What was wrong before and stays so is another matter.
    let wrong = config("").replace("'git:log'", "'git:../log'");
    assert!(migrated(&wrong).text.contains("git:../log"));
}
