//! Autoscalers: what says how many pods there are, in place of the number in the file of what it scales.
//!
//! Source of the fields and of their rules: Kubernetes' `HorizontalPodAutoscaler`.

use serde_json::Value;

use super::findings::Findings;
use super::pod_template::text_at;
use super::problem::Problem;
use super::shape::autoscaler::AUTOSCALER_SPEC;
use super::shape::{Strictness, Type, check_at};
use super::stage_context::Stages;
use crate::model::deployment_config::AUTOSCALER;
use crate::model::ids::StageName;
use crate::model::object::{Kind, Location, Object, ObjectKey};

/// What is said of one where nothing scales by load.
pub(crate) const BY_HAND: &str = "launchway does not scale by load here: `launchway scale`, or whoever calls its API, \
                                  says how many pods there are";

/// An autoscaler as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Autoscaler {
    name: String,
    /// The kind that it scales, as it names it.
    kind: Kind,
    /// The name of what it scales.
    target: String,
    location: Location,
    /// Where it names what it scales.
    names_it_at: Location,
    pub(crate) stages: Stages,
}

/// Whether an object is an autoscaler, in any version of that.
pub(crate) fn is_one(api_version: &str, kind: &str) -> bool {
    kind == "HorizontalPodAutoscaler" && api_version.starts_with("autoscaling/")
}

/// Checks an autoscaler; nothing, if what it scales is none of launchway's business.
pub(crate) fn read(content: &Value, stages: &Stages, findings: &mut Findings<'_>) -> Option<Autoscaler> {
    let mut spec = content.get("spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    check_at("/spec", &mut spec, Type::Object(&AUTOSCALER_SPEC), Strictness::Users, findings);
    let count = |key: &str| spec.get(key).and_then(Value::as_u64);
    let (least, most) = (count("minReplicas").unwrap_or(1), count("maxReplicas"));
    if let Some(most) = most.filter(|most| *most < least) {
        let message = format!("{most} is less than minReplicas, which is {least}");
        findings.error("/spec/maxReplicas", "invalid", message);
    }
    let kind = match text_at(&spec, "/scaleTargetRef/kind") {
        "DeploymentConfig" => Kind::DeploymentConfig,
        "Deployment" => Kind::Deployment,
        "ReplicationController" => Kind::ReplicationController,
        _ => return None,
    };
    let (name, target) = (text_at(content, "/metadata/name"), text_at(&spec, "/scaleTargetRef/name"));
    (!findings.has_errors() && !name.is_empty()).then(|| Autoscaler {
        name: name.to_owned(),
        kind,
        target: target.to_owned(),
        location: findings.location(""),
        names_it_at: findings.location("/spec/scaleTargetRef/name"),
        stages: stages.clone(),
    })
}

impl Autoscaler {
    /// The identity of what it scales.
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey { kind: Kind::DeploymentConfig, name: self.target.clone() }
    }

    /// What it scales, once it says how many pods that has; nothing, if that is a replication controller that no deployment
    /// config deploys.
    ///
    /// # Errors
    /// If `found` is not what it names, or another autoscaler scales that already.
    pub(crate) fn scaled(&self, found: Option<&Object>, stage: &StageName) -> Result<Option<Object>, Box<Problem>> {
        let Some(found) = found.filter(|found| found.declared_kind() == self.kind) else {
            let is_none_of_ours = self.kind == Kind::ReplicationController;
            return if is_none_of_ours { Ok(None) } else { Err(self.scales_nothing(found, stage)) };
        };
        let mut content = found.content.value();
        let Some(spec) = content.get_mut("spec").and_then(Value::as_object_mut) else { return Ok(None) };
        if let (Some(Value::String(other)), Some(at)) = (spec.get(AUTOSCALER), &found.autoscaled_at) {
            let message = format!(
                "HorizontalPodAutoscaler/{} scales {}/{}, which HorizontalPodAutoscaler/{other} scales already",
                self.name, self.kind, self.target
            );
            let problem = Problem::error(&self.names_it_at, "duplicate", message);
            return Err(Box::new(problem.hint(format!("the other one is at {at}; remove one of them"))));
        }
        spec.insert(AUTOSCALER.to_owned(), self.name.clone().into());
        let mut scaled = found.clone();
        super::digest::exchange(&mut scaled, content);
        scaled.autoscaled_at = Some(self.location.clone());
        Ok(Some(scaled))
    }

    fn scales_nothing(&self, found: Option<&Object>, stage: &StageName) -> Box<Problem> {
        let Self { kind, target, .. } = self;
        let message = format!("stage `{stage}` declares no {kind}/{target}, so that this autoscaler scales nothing");
        let problem = Problem::error(&self.names_it_at, "not-found", message).warning();
        let hint = match found {
            Some(found) => {
                let kind = found.declared_kind();
                format!("{kind}/{target} is declared at {}; write `kind: {kind}`", found.location)
            }
            None => format!("declare {kind}/{target}, or remove the autoscaler"),
        };
        Box::new(problem.hint(hint))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::manifest::yaml;
    use crate::testing::world::deployment_config;

    fn problems(spec: &str) -> (Option<Autoscaler>, Vec<String>) {
        let text = format!("metadata: {{name: hpa}}\nspec: {spec}\n");
        let reading = yaml::read(text.as_bytes());
        assert_eq!(reading.errors, [], "{text}");
        let mut findings = Findings::new("hpa.yaml", &reading.documents[0], "");
        let read = read(&reading.documents[0].value, &None, &mut findings);
        (read, findings.problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_wrong_with_an_autoscaler_is_told_with_its_place() {
        for (spec, expected) in [
            ("{scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3, minReplicas: 3}", None),
            ("{scaleTargetRef: {kind: Deployment, name: web}, maxReplicas: 3, metrics: [{type: Pods}]}", None),
            (
                "{scaleTargetRef: {kind: Deployment, name: web}, minReplicas: 4, maxReplicas: 3}",
                Some("hpa.yaml:2:84: error: spec.maxReplicas: 3 is less than minReplicas, which is 4"),
            ),
            (
                "{scaleTargetRef: {kind: Deployment, name: web}}",
                Some("hpa.yaml:2:7: error: spec.maxReplicas: this is required"),
            ),
            ("{maxReplicas: 3}", Some("hpa.yaml:2:7: error: spec.scaleTargetRef: this is required")),
            ("{scaleTargetRef: {kind: Deployment, name: web}, maxReplica: 3}", Some("did you mean `maxReplicas`?")),
        ] {
            let found = problems(spec).1.join("\n");
            match expected {
                Some(expected) => assert!(found.contains(expected), "{spec}: {found}"),
                None => assert_eq!(found, "", "{spec}"),
            }
        }
    }

    #[test]
    fn one_autoscaler_says_of_what_it_names_how_many_pods_there_are() {
        let of = |kind: &str, name: &str| {
            let spec = format!("{{scaleTargetRef: {{kind: {kind}, name: {name}}}, maxReplicas: 3}}");
            problems(&spec).0
        };
        let named = of("DeploymentConfig", "web").expect("it is one");
        let web = deployment_config("web", "a", 2, json!({}));
        let scaled = named.scaled(Some(&web), &"dev".into()).expect("nothing is wrong").expect("it scales that");
        assert_eq!(scaled.content.at("/spec/autoscaler"), Some("hpa".into()));
        assert_eq!(scaled.content.at("/spec/replicas"), Some(2.into()), "it starts with what its file says");
        assert_ne!(scaled.digest, web.digest);
        assert_eq!(of("StatefulSet", "db"), None);
        let deployment = of("Deployment", "web").expect("it is one");
        for (autoscaler, found, expected) in [
            (
                &named,
                None,
                "warning: stage `dev` declares no DeploymentConfig/web, so that this autoscaler scales nothing",
            ),
            (&deployment, Some(&web), "DeploymentConfig/web is declared at :0:0; write `kind: DeploymentConfig`"),
            (
                &named,
                Some(&scaled),
                "error: HorizontalPodAutoscaler/hpa scales DeploymentConfig/web, which HorizontalPodAutoscaler/hpa scales \
                 already (the other one is at hpa.yaml:1:1; remove one of them)",
            ),
        ] {
            let problem = autoscaler.scaled(found, &"dev".into()).expect_err(expected).to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
