//! What starts a deployment, listed and changed: the words of `oc set triggers`.

use serde_json::{Value, json};

use super::below;
use super::change::{Change, difference};
use super::object::Config;
use crate::manifest::deployment::annotations::{IMAGE_TRIGGERS, TRIGGERS, container};
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::problem::Problem;
use crate::model::object::Kind;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct TriggerRequest {
    /// Of which triggers; of all if absent.
    pub of: Option<TriggerSource>,
    /// What is to become of them.
    pub wish: Wish,
}

/// What a trigger follows.
#[derive(Clone, Debug)]
pub enum TriggerSource {
    /// The pod template.
    Config,
    /// An image, for the containers named; for the only one if none is.
    Image {
        /// `<stream>:<tag>`.
        name: String,
        /// Where that is, if not in the same namespace.
        namespace: Option<String>,
        /// The containers that get it.
        containers: Vec<String>,
    },
}

/// What is to become of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// They are there, and start deployments by themselves.
    Automatic,
    /// They start nothing by themselves.
    Manual,
    /// They go.
    Removed,
}

/// A trigger as `oc` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerRow {
    /// `config` or `image`.
    pub kind: &'static str,
    /// The image and the containers that get it.
    pub value: String,
    /// Whether it starts deployments by itself.
    pub is_automatic: bool,
}

/// The triggers of a deployment config.
///
/// # Errors
/// What is wrong with an annotation that says them.
pub fn listed(config: &Config) -> Result<Vec<TriggerRow>, Box<Problem>> {
    let of_deployment = config.kind == Kind::Deployment;
    let written = if of_deployment { config.said(TRIGGERS)? } else { own_list(config) };
    let list = or_default(&written);
    let by_config = items(&list, "").any(|(_, trigger)| is_config(trigger));
    let mut rows = vec![TriggerRow { kind: "config", value: String::new(), is_automatic: by_config }];
    for (_, trigger) in items(&list, "").filter(|(_, trigger)| !is_config(trigger)) {
        let Some(params) = trigger.get("imageChangeParams") else { continue };
        let names: Vec<&str> = items(params, "/containerNames").filter_map(|(_, name)| name.as_str()).collect();
        let is_automatic = params.get("automatic") == Some(&json!(true));
        rows.push(TriggerRow { kind: "image", value: value_of(params, &names), is_automatic });
    }
    if of_deployment {
        for (_, trigger) in items(&config.said(IMAGE_TRIGGERS)?, "") {
            let name = container(text_at(trigger, "/fieldPath"), config.value()).unwrap_or_default();
            let value = value_of(trigger, &[&name]);
            rows.push(TriggerRow { kind: "image", value, is_automatic: !is_paused(trigger) });
        }
    }
    Ok(rows)
}

fn value_of(params: &Value, containers: &[&str]) -> String {
    let (namespace, name) = (text_at(params, "/from/namespace"), text_at(params, "/from/name"));
    let source = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    if containers.is_empty() { source } else { format!("{source} ({})", containers.join(", ")) }
}

/// The text of a file with other triggers of a deployment config in it.
///
/// # Errors
/// What is asked for and does not fit, or why the file cannot be changed so.
pub fn triggers(text: &str, config: &Config, request: &TriggerRequest) -> Result<String, Box<Problem>> {
    if config.value().get("spec").is_none() {
        config.refuse_the_proposals_words()?;
    }
    let request = &complete(config, request)?;
    if config.kind != Kind::Deployment {
        let list = own_list(config);
        if !list.is_null() && !list.is_array() {
            return Err(config.problem("/spec/triggers", "this is no list, and is not changed"));
        }
        return config.with(text, of_list(&list, "/spec/triggers", request, true));
    }
    let own = of_list(&config.said(TRIGGERS)?, "", request, false);
    let of_images = of_image_triggers(config, request)?;
    let mut changes = Vec::new();
    changes.extend(config.in_annotation(TRIGGERS, "[{type: ConfigChange}]", &own)?);
    changes.extend(match config.annotation(IMAGE_TRIGGERS) {
        Some(text) if text.contains('"') => config.in_annotation(IMAGE_TRIGGERS, "[]", &of_images)?,
        _ => new_list(&of_images),
    });
    config.with(text, changes)
}

/// A list of image triggers where there was none: OpenShift reads it as JSON.
fn new_list(changes: &[Change]) -> Option<Change> {
    let mut list = json!([]);
    changes.iter().for_each(|change| change.apply(&mut list));
    (!changes.is_empty()).then(|| Change::set(below("/metadata/annotations", IMAGE_TRIGGERS), list.to_string()))
}

/// The request with its containers, all of which are there.
fn complete(config: &Config, request: &TriggerRequest) -> Result<TriggerRequest, Box<Problem>> {
    let mut request = request.clone();
    let (Some(TriggerSource::Image { containers, .. }), true) = (&mut request.of, request.wish != Wish::Removed) else {
        return Ok(request);
    };
    let known = config.containers(true);
    if containers.is_empty() {
        match known.as_slice() {
            [only] => containers.push((*only).to_owned()),
            _ => {
                return Err(config.problem(
                    "/spec/template",
                    "there are several containers: name those that get the image with --containers",
                ));
            }
        }
    }
    let unknown: Vec<&str> = containers.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
    if !unknown.is_empty() {
        let message = format!("not all container names exist: {} (accepts: {})", unknown.join(", "), known.join(", "));
        return Err(config.problem("/spec/template", message));
    }
    Ok(request)
}

fn own_list(config: &Config) -> Value {
    config.value().pointer("/spec/triggers").cloned().unwrap_or_default()
}

fn or_default(list: &Value) -> Value {
    if list.is_null() { json!([{"type": "ConfigChange"}]) } else { list.clone() }
}

fn is_config(trigger: &Value) -> bool {
    text_at(trigger, "/type") == "ConfigChange"
}

/// The changes of a list of triggers; of one that was not there, the first one writes out what that means.
fn of_list(written: &Value, at: &str, request: &TriggerRequest, takes_images: bool) -> Vec<Change> {
    let list = or_default(written);
    let triggers: Vec<&Value> = items(&list, "").map(|(_, trigger)| trigger).collect();
    let matching = |fits: &dyn Fn(&Value) -> bool| -> Vec<usize> {
        triggers.iter().enumerate().filter(|(_, trigger)| fits(trigger)).map(|(index, _)| index).collect()
    };
    let removed =
        |found: Vec<usize>| found.into_iter().rev().map(|index| Change::remove(format!("{at}/{index}"))).collect();
    let with_config = || -> Vec<Change> {
        let is_there = triggers.iter().any(|trigger| is_config(trigger));
        let appended = Change::set(format!("{at}/{}", triggers.len()), json!({"type": "ConfigChange"}));
        if is_there { Vec::new() } else { vec![appended] }
    };
    let changes: Vec<Change> = match (&request.of, request.wish) {
        (None, Wish::Removed) if triggers.is_empty() => Vec::new(),
        (None, Wish::Removed) => vec![Change::set(at, json!([]))],
        (None, wish) => {
            let images = matching(&|trigger| trigger.get("imageChangeParams").is_some());
            let mut changes: Vec<_> =
                images.iter().flat_map(|index| automatic(triggers[*index], *index, at, wish)).collect();
            let config = if wish == Wish::Manual { removed(matching(&is_config)) } else { with_config() };
            changes.extend(config);
            changes
        }
        (Some(TriggerSource::Config), Wish::Automatic) => with_config(),
        (Some(TriggerSource::Config), _) => removed(matching(&is_config)),
        (Some(TriggerSource::Image { name, namespace, containers }), wish) => {
            let found = matching(&|trigger| follows(trigger.get("imageChangeParams"), name, namespace.as_deref()));
            match found.first() {
                _ if wish == Wish::Removed => removed(found),
                Some(index) => of_image(triggers[*index], *index, at, (containers, wish)),
                None if takes_images => {
                    let from = source(name, namespace.as_deref());
                    let is_automatic = wish == Wish::Automatic;
                    let params = json!({"automatic": is_automatic, "containerNames": containers, "from": from});
                    let trigger = json!({"type": "ImageChange", "imageChangeParams": params});
                    vec![Change::set(format!("{at}/{}", triggers.len()), trigger)]
                }
                None => Vec::new(),
            }
        }
    };
    let written_out = (written.is_null() && !changes.is_empty()).then(|| Change::set(at, list.clone()));
    written_out.into_iter().chain(changes).collect()
}

/// The changes of the trigger of an image that is there.
fn of_image(trigger: &Value, index: usize, at: &str, (containers, wish): (&[String], Wish)) -> Vec<Change> {
    const NAMES: &str = "/imageChangeParams/containerNames";
    let mut changes = automatic(trigger, index, at, wish);
    let old = trigger.pointer(NAMES).unwrap_or(&Value::Null);
    changes.extend(difference(&format!("{at}/{index}{NAMES}"), old, &json!(containers)));
    changes
}

fn automatic(trigger: &Value, index: usize, at: &str, wish: Wish) -> Vec<Change> {
    let is_automatic = trigger.pointer("/imageChangeParams/automatic") == Some(&json!(true));
    let wanted = wish == Wish::Automatic;
    if is_automatic == wanted {
        return Vec::new();
    }
    vec![Change::set(format!("{at}/{index}/imageChangeParams/automatic"), wanted)]
}

fn follows(params: Option<&Value>, name: &str, namespace: Option<&str>) -> bool {
    params.is_some_and(|params| {
        text_at(params, "/from/name") == name && namespace.unwrap_or_default() == text_at(params, "/from/namespace")
    })
}

fn source(name: &str, namespace: Option<&str>) -> Value {
    match namespace {
        Some(namespace) => json!({"kind": "ImageStreamTag", "name": name, "namespace": namespace}),
        None => json!({"kind": "ImageStreamTag", "name": name}),
    }
}

fn is_paused(trigger: &Value) -> bool {
    matches!(trigger.get("paused"), Some(Value::Bool(true) | Value::String(_)))
}

/// OpenShift's triggers of images: each is of one container.
fn of_image_triggers(config: &Config, request: &TriggerRequest) -> Result<Vec<Change>, Box<Problem>> {
    let list = config.said(IMAGE_TRIGGERS)?;
    let triggers: Vec<&Value> = items(&list, "").map(|(_, trigger)| trigger).collect();
    let paused = |index: usize, wish: Wish| match (is_paused(triggers[index]), wish) {
        (true, Wish::Automatic) => Some(Change::remove(format!("/{index}/paused"))),
        (false, Wish::Manual) => Some(Change::set(format!("/{index}/paused"), true)),
        _ => None,
    };
    let all = 0..triggers.len();
    Ok(match (&request.of, request.wish) {
        (Some(TriggerSource::Config), _) => Vec::new(),
        (None, Wish::Removed) => all.rev().map(|index| Change::remove(format!("/{index}"))).collect(),
        (None, wish) => all.filter_map(|index| paused(index, wish)).collect(),
        (Some(TriggerSource::Image { name, namespace, containers }), wish) => {
            let fits = |index: &usize| follows(Some(triggers[*index]), name, namespace.as_deref());
            let of =
                |index: usize| container(text_at(triggers[index], "/fieldPath"), config.value()).unwrap_or_default();
            let found: Vec<usize> = all.filter(fits).collect();
            let is_kept = |index: &usize| wish != Wish::Removed && containers.contains(&of(*index));
            let (kept, gone): (Vec<usize>, Vec<usize>) = found.into_iter().partition(is_kept);
            let mut changes: Vec<Change> = kept.iter().filter_map(|index| paused(*index, wish)).collect();
            let is_new = |name: &&String| wish != Wish::Removed && !kept.iter().any(|index| of(*index) == **name);
            let own = config.said(TRIGGERS)?;
            let is_elsewhere = items(&own, "")
                .any(|(_, trigger)| follows(trigger.get("imageChangeParams"), name, namespace.as_deref()));
            for (offset, container) in containers.iter().filter(is_new).enumerate().filter(|_| !is_elsewhere) {
                let path = format!("spec.template.spec.containers[?(@.name==\"{container}\")].image");
                let mut trigger = json!({"from": source(name, namespace.as_deref()), "fieldPath": path});
                if wish == Wish::Manual {
                    trigger["paused"] = json!(true);
                }
                changes.push(Change::set(format!("/{}", triggers.len() + offset), trigger));
            }
            changes.extend(gone.iter().rev().map(|index| Change::remove(format!("/{index}"))));
            changes
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::edit::configs;

    const CONTAINERS: &str =
        "  template:\n    spec: {initContainers: [{name: init}], containers: [{name: web}, {name: log}]}\n";

    fn config(spec: &str) -> String {
        format!("apiVersion: v1\nkind: DeploymentConfig\nmetadata: {{name: web}}\nspec: # all\n{spec}{CONTAINERS}")
    }

    fn deployment(annotations: &str) -> String {
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n{annotations}spec:\n{CONTAINERS}")
    }

    fn changed(text: &str, of: Option<TriggerSource>, wish: Wish) -> String {
        let found = configs("web.yaml", text).expect("sound");
        let request = TriggerRequest { of, wish };
        let once = triggers(text, &found[0], &request).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
        let again = configs("web.yaml", &once).expect("sound");
        assert_eq!(triggers(&once, &again[0], &request).expect("as it is"), once);
        once
    }

    fn image(containers: &[&str]) -> Option<TriggerSource> {
        let containers = containers.iter().map(ToString::to_string).collect();
        Some(TriggerSource::Image { name: "web:1".to_owned(), namespace: None, containers })
    }

    const IMAGE: &str = "  - type: ImageChange # mine\n    imageChangeParams:\n      automatic: true # yes\n      containerNames: [web]\n      from: {kind: ImageStreamTag, name: 'web:1'}\n";

    #[test]
    fn triggers_of_a_deployment_config_are_changed_where_they_stand() {
        let both = format!("  triggers:\n  - type: ConfigChange\n{IMAGE}");
        let added = "  - type: ImageChange\n    imageChangeParams:\n      automatic: true\n      containerNames:\n      - log\n      from:\n        kind: ImageStreamTag\n        name: web:1\n";
        let config_only = "  triggers:\n  - type: ConfigChange\n";
        let manual = format!("  triggers:\n{}", IMAGE.replace("true # yes", "false # yes"));
        let source = || Some(TriggerSource::Config);
        let table = [
            (both.as_str(), None, Wish::Manual, manual.as_str()),
            (&both, None, Wish::Automatic, &both),
            (&both, None, Wish::Removed, "  triggers: []\n"),
            (&both, source(), Wish::Removed, &format!("  triggers:\n{IMAGE}")),
            (&both, image(&[]), Wish::Removed, config_only),
            (&both, image(&["web", "log"]), Wish::Automatic, &both.replace("[web]", "[web, log]")),
            (config_only, image(&["log"]), Wish::Automatic, &format!("{config_only}{added}")),
            (config_only, source(), Wish::Removed, "  triggers: []\n"),
            ("  triggers: []\n", source(), Wish::Automatic, config_only),
            ("  triggers: []\n", None, Wish::Manual, "  triggers: []\n"),
            ("", None, Wish::Automatic, ""),
        ];
        for (before, of, wish, after) in table {
            assert_eq!(changed(&config(before), of, wish), config(after), "{before} {wish:?}");
        }
        // What was not written means a trigger, and is written out before it goes.
        assert!(changed(&config(""), None, Wish::Manual).ends_with("  triggers: []\n"));
        let with_image = changed(&config(""), image(&["log"]), Wish::Automatic);
        assert!(with_image.ends_with(&format!("{config_only}{added}")), "{with_image}");
    }

    #[test]
    fn triggers_of_a_deployment_are_in_its_annotations() {
        let off = "  annotations:\n    launchway.dev/triggers: \"[]\"\n";
        assert_eq!(changed(&deployment(""), None, Wish::Manual), deployment(off));
        assert_eq!(changed(&deployment(""), None, Wish::Automatic), deployment(""));
        let on = off.replace("\"[]\"", "\"- type: ConfigChange\"");
        assert_eq!(changed(&deployment(off), Some(TriggerSource::Config), Wish::Automatic), deployment(&on));
        let with_image = changed(&deployment(off), image(&["web"]), Wish::Manual);
        let found = configs("web.yaml", &with_image).expect("sound");
        let written = found[0].annotation(IMAGE_TRIGGERS).expect("there");
        let expected = json!([{"from": {"kind": "ImageStreamTag", "name": "web:1"}, "fieldPath": "spec.template.spec.containers[?(@.name==\"web\")].image", "paused": true}]);
        assert_eq!(serde_json::from_str::<Value>(written).expect("JSON"), expected);
        let row = TriggerRow { kind: "image", value: "web:1 (web)".to_owned(), is_automatic: false };
        assert_eq!(listed(&found[0]).expect("listed")[1], row);
        let automatic = changed(&with_image, None, Wish::Automatic);
        assert!(!automatic.contains("paused"), "{automatic}");
        let removed = changed(&automatic, image(&[]), Wish::Removed);
        assert!(removed.contains("image.openshift.io/triggers: '[]'") || removed.contains("\"[]\""), "{removed}");
        let lines = "  annotations:\n    launchway.dev/triggers: |\n      # by hand\n      - type: ConfigChange # all\n      - type: Manual\n";
        let without = lines.replace("      - type: ConfigChange # all\n", "");
        assert_eq!(changed(&deployment(lines), Some(TriggerSource::Config), Wish::Removed), deployment(&without));
    }

    #[test]
    fn what_does_not_fit_is_refused_where_it_stands() {
        let refused = |text: &str, of: Option<TriggerSource>| {
            let found = configs("web.yaml", text).expect("sound");
            triggers(text, &found[0], &TriggerRequest { of, wish: Wish::Automatic }).expect_err(text).to_string()
        };
        let several = refused(&config(""), image(&[]));
        assert!(several.starts_with("web.yaml:6:5: error: there are several containers"), "{several}");
        let unknown = refused(&config(""), image(&["db"]));
        assert!(unknown.contains("not all container names exist: db (accepts: init, web, log)"), "{unknown}");
        let parameter = refused(&config("  triggers: ${{T}}\n"), None);
        assert!(parameter.starts_with("web.yaml:5:13: error: this is no list"), "{parameter}");
        let proposed =
            "apiVersion: v1\nkind: DeploymentConfig\nid: web\ntemplate: {controllerTemplate: {}}\ntriggers: []\n";
        let proposed = refused(proposed, None);
        assert!(proposed.starts_with("web.yaml:4:11: error: this is in the words of a proposal"), "{proposed}");
        let broken = refused(&deployment("  annotations:\n    launchway.dev/triggers: |\n      - [\n"), None);
        assert!(broken.starts_with("web.yaml:"), "{broken}");
    }

    #[test]
    fn lists_and_templates_are_looked_into() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, metadata: {name: web}}\n- apiVersion: apps.openshift.io/v1\n  kind: DeploymentConfig\n  metadata: {name: web}\n  spec: {}\n";
        assert_eq!(changed(list, None, Wish::Manual), list.replace("spec: {}", "spec:\n    triggers: []"));
        let template = "{\n  \"apiVersion\": \"template.openshift.io/v1\", \"kind\": \"Template\",\n  \"objects\": [{\n    \"apiVersion\": \"v1\", \"kind\": \"DeploymentConfig\", \"metadata\": {\"name\": \"${N}-x\"},\n    \"spec\": {\"triggers\": [{\"type\": \"ConfigChange\"}]}\n  }],\n  \"parameters\": [{\"name\": \"N\", \"value\": \"web\"}]\n}\n";
        assert_eq!(configs("a.json", template).expect("sound")[0].name, "web-x");
        assert_eq!(changed(template, None, Wish::Removed), template.replace("[{\"type\": \"ConfigChange\"}]", "[]"));
    }
}
