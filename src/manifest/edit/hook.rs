//! Lifecycle hooks, set and removed: the words of `oc set deployment-hook`.

use serde_json::{Map, Value, json};

use super::change::{Change, difference};
use super::object::Config;
use crate::manifest::deployment::annotations::{HOOKS, STRATEGY};
use crate::manifest::pod_template::text_at;
use crate::manifest::problem::Problem;
use crate::model::object::Kind;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// Before the rollout.
    Pre,
    /// In its middle.
    Mid,
    /// Behind it.
    Post,
}

impl HookPoint {
    fn name(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Mid => "mid",
            Self::Post => "post",
        }
    }
}

/// What is asked for.
#[derive(Clone, Debug)]
pub enum HookRequest {
    /// A hook that runs a command.
    Set {
        /// When.
        point: HookPoint,
        /// The command, not run by a shell.
        command: Vec<String>,
        /// The container that it is made from; the first one if absent.
        container: Option<String>,
        /// Its variables.
        environment: Vec<(String, String)>,
        /// Volumes of the template.
        volumes: Vec<String>,
        /// `Abort`, `Retry` or `Ignore`.
        policy: &'static str,
    },
    /// None at these points.
    Remove(Vec<HookPoint>),
}

/// The text of a file with other hooks of a deployment config in it.
///
/// # Errors
/// Why the file cannot be changed so.
pub fn hooks(text: &str, config: &Config, request: &HookRequest) -> Result<String, Box<Problem>> {
    let points = match request {
        HookRequest::Set { point, .. } => vec![*point],
        HookRequest::Remove(points) => points.clone(),
    };
    let mut text = text.to_owned();
    for point in points {
        // What is removed before may move what comes now.
        let configs = super::configs(&config.location.file, &text)?;
        let same = |other: &&Config| other.document == config.document && other.pointer == config.pointer;
        let Some(now) = configs.iter().find(same) else { continue };
        text = now.with(&text, changes(now, point, request)?)?;
    }
    Ok(text)
}

fn changes(config: &Config, point: HookPoint, request: &HookRequest) -> Result<Vec<Change>, Box<Problem>> {
    let name = point.name();
    if config.kind != Kind::Deployment {
        let strategy = config.value().pointer("/spec/strategy").unwrap_or(&Value::Null);
        let usual = format!("/{}/{name}", config.block(strategy)?);
        let older = format!("/lifecycle/{name}");
        let place = if strategy.pointer(&older).is_some() { older } else { usual };
        return Ok(change(config, strategy.pointer(&place), &format!("/spec/strategy{place}"), request));
    }
    let annotated = config.said(STRATEGY)?;
    let own = config.value().pointer("/spec/strategy").unwrap_or(&Value::Null);
    let is_said = !text_at(&annotated, "/type").is_empty();
    let place = format!("/{}/{name}", config.block(if is_said { &annotated } else { own })?);
    if let Some(hook) = annotated.pointer(&place) {
        let changes = change(config, Some(hook), &place, request);
        return Ok(config.in_annotation(STRATEGY, "{}", &changes)?.into_iter().collect());
    }
    let said = config.said(HOOKS)?;
    let pointer = super::below("/metadata/annotations", HOOKS);
    let inner = change(config, said.get(name), &format!("/{name}"), request);
    let is_last = said.as_object().is_some_and(|hooks| hooks.len() == 1 && hooks.contains_key(name));
    if matches!(request, HookRequest::Remove(_)) && is_last {
        return Ok(vec![Change::remove(pointer)]);
    }
    Ok(config.in_annotation(HOOKS, "{}\n", &inner)?.into_iter().collect())
}

fn change(config: &Config, old: Option<&Value>, at: &str, request: &HookRequest) -> Vec<Change> {
    match (request, old) {
        (HookRequest::Remove(_), None) => Vec::new(),
        (HookRequest::Remove(_), Some(_)) => vec![Change::remove(at)],
        (HookRequest::Set { .. }, None | Some(Value::Null)) => {
            vec![Change::set(at, Value::Object(hook(config, Map::new(), request)))]
        }
        (HookRequest::Set { .. }, Some(old)) => {
            let kept = old.as_object().cloned().unwrap_or_default();
            difference(at, old, &Value::Object(hook(config, kept, request)))
        }
    }
}

/// The hook, with what only launchway has in it where that was there.
fn hook(config: &Config, mut kept: Map<String, Value>, request: &HookRequest) -> Map<String, Value> {
    let HookRequest::Set { command, container, environment, volumes, policy, .. } = request else { return kept };
    let first = || config.containers(false).first().map(|name| (*name).to_owned());
    let mut exec = json!({"command": command});
    if let Some(container) = container.clone().or_else(first) {
        exec["containerName"] = json!(container);
    }
    if !environment.is_empty() {
        exec["env"] = environment.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    }
    if !volumes.is_empty() {
        exec["volumes"] = json!(volumes);
    }
    kept.shift_remove("tagImages");
    kept.insert("failurePolicy".to_owned(), json!(policy));
    kept.insert("execNewPod".to_owned(), exec);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::edit::configs;

    const TEMPLATE: &str = "  template: {spec: {containers: [{name: web}, {name: log}]}} # pods\n";

    fn config(spec: &str) -> String {
        format!("apiVersion: v1\nkind: DeploymentConfig\nmetadata: {{name: web}}\nspec:\n{spec}{TEMPLATE}")
    }

    fn deployment(annotations: &str) -> String {
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n{annotations}spec:\n{TEMPLATE}")
    }

    fn set(point: HookPoint, policy: &'static str) -> HookRequest {
        let command = vec!["bin/migrate".to_owned(), "--all".to_owned()];
        let environment = vec![("A".to_owned(), "yes".to_owned())];
        HookRequest::Set { point, command, container: None, environment, volumes: vec!["data".to_owned()], policy }
    }

    fn changed(text: &str, request: &HookRequest) -> String {
        let found = configs("web.yaml", text).expect("sound");
        let once = hooks(text, &found[0], request).unwrap_or_else(|problem| unreachable!("{problem}\n{text}"));
        let again = configs("web.yaml", &once).expect("sound");
        assert_eq!(hooks(&once, &again[0], request).expect("as it is"), once);
        once
    }

    const EXEC: [&str; 9] = [
        "execNewPod:",
        "  command:",
        "  - bin/migrate",
        "  - \"--all\"",
        "  containerName: web",
        "  env:",
        "  - name: A",
        "    value: \"yes\"",
        "  volumes:",
    ];

    fn hook_lines(column: usize, policy: &str) -> String {
        let lines = std::iter::once(format!("failurePolicy: {policy}")).chain(EXEC.iter().map(ToString::to_string));
        lines.chain(["  - data".to_owned()]).map(|line| format!("{}{line}\n", " ".repeat(column))).collect()
    }

    #[test]
    fn hooks_of_a_deployment_config_are_in_its_strategys_block() {
        let rolling = "  strategy: # how\n    rollingParams:\n      timeoutSeconds: 60 # long\n";
        let with_pre = format!("{rolling}      pre:\n{}", hook_lines(8, "Abort"));
        let recreate = "  strategy:\n    type: Recreate\n";
        let with_mid = format!("{recreate}    recreateParams:\n      mid:\n{}", hook_lines(8, "Ignore"));
        let older = "  strategy:\n    lifecycle: {pre: {failurePolicy: Abort, execNewPod: {command: [a]}}, post: {failurePolicy: Abort}}\n";
        let gone = HookRequest::Remove(vec![HookPoint::Pre, HookPoint::Post]);
        for (before, request, after) in [
            (rolling, set(HookPoint::Pre, "Abort"), with_pre.as_str()),
            (recreate, set(HookPoint::Mid, "Ignore"), &with_mid),
            (&with_pre, gone.clone(), rolling),
            (older, gone.clone(), "  strategy:\n    lifecycle: {}\n"),
            (rolling, gone, rolling),
        ] {
            assert_eq!(changed(&config(before), &request), config(after));
        }
    }

    #[test]
    fn a_hook_that_is_there_keeps_its_comments_and_what_only_launchway_has() {
        let before = "  strategy:\n    rollingParams:\n      # first\n      pre:\n        failurePolicy: Retry # at all costs\n        timeoutSeconds: 7\n        execNewPod:\n          # the old one\n          command: [bin/old]\n          containerName: log\n";
        let text = changed(&config(before), &set(HookPoint::Pre, "Abort"));
        for kept in [
            "      # first\n",
            "Abort # at all costs\n",
            "timeoutSeconds: 7\n",
            "          # the old one\n          command: [bin/migrate, \"--all\"]\n",
            "containerName: web\n",
        ] {
            assert!(text.contains(kept), "{kept}: {text}");
        }
    }

    #[test]
    fn hooks_of_a_deployment_are_in_an_annotation() {
        let added = format!("  annotations:\n    launchway.dev/hooks: |\n      post:\n{}", hook_lines(8, "Retry"));
        assert_eq!(changed(&deployment(""), &set(HookPoint::Post, "Retry")), deployment(&added));
        let known = "  annotations:\n    note: x\n    launchway.dev/hooks: |\n      # ours\n      pre: # first\n        failurePolicy: Abort\n        execNewPod: {command: [a]}\n";
        let both = format!("{known}      post:\n{}", hook_lines(8, "Retry"));
        assert_eq!(changed(&deployment(known), &set(HookPoint::Post, "Retry")), deployment(&both));
        let pre = HookRequest::Remove(vec![HookPoint::Pre]);
        assert_eq!(changed(&deployment(known), &pre), deployment("  annotations:\n    note: x\n"));
        let strategy = "  annotations:\n    launchway.dev/strategy: |\n      type: Canary\n      canaryParams:\n        steps: [{weight: 10}]\n        pre: {failurePolicy: Abort, execNewPod: {command: [a]}} # here\n";
        let without = strategy.replace("        pre: {failurePolicy: Abort, execNewPod: {command: [a]}} # here\n", "");
        assert_eq!(changed(&deployment(strategy), &pre), deployment(&without));
    }

    #[test]
    fn what_has_no_hooks_is_refused() {
        for (spec, told) in [
            ("  strategy: {type: Custom}\n", "web.yaml:5:13: error: a strategy that is `Custom` has no hooks"),
            ("  controllerTemplate: {}\n", "web.yaml:5:3: error: this is in the words of a proposal"),
        ] {
            let text = config(spec);
            let found = configs("web.yaml", &text).expect("sound");
            let refused = hooks(&text, &found[0], &set(HookPoint::Pre, "Abort")).expect_err(spec);
            assert!(refused.to_string().starts_with(told), "{refused}");
        }
    }
}
