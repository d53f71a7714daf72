//! Triggers where a `Deployment` says them: two annotations.

use serde_json::{Value, json};

use super::{Step, block_of};
use crate::manifest::deployment::annotations::{IMAGE_TRIGGERS, TRIGGERS};
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::manifest::problem::Problem;

impl Step {
    pub(super) fn triggers(&mut self) -> Result<(), Box<Problem>> {
        let written = self.config.value().pointer("/spec/triggers").cloned().unwrap_or_default();
        if !written.is_null() && !written.is_array() {
            return Err(self.config.problem("/spec/triggers", "this is no list, and is not migrated"));
        }
        let (images, others): (Vec<_>, Vec<_>) = items(&written, "")
            .map(|(_, trigger)| trigger.clone())
            .partition(|trigger| text_at(trigger, "/type") == "ImageChange");
        self.drop_if_there("/spec/triggers")?;
        let is_usual = others.len() == 1 && text_at(&others[0], "/type") == "ConfigChange";
        if !written.is_null() && !is_usual {
            let text = if others.is_empty() { "[]".to_owned() } else { block_of(&json!(others)) };
            self.annotate(TRIGGERS, &text)?;
        }
        let template = self.config.value().pointer("/spec/template").cloned().unwrap_or_default();
        let converted: Vec<Value> = images.iter().flat_map(|trigger| self.of_image(trigger, &template)).collect();
        if converted.is_empty() { Ok(()) } else { self.annotate(IMAGE_TRIGGERS, &json!(converted).to_string()) }
    }

    /// OpenShift's triggers of an image: one for each container that gets it.
    fn of_image(&mut self, trigger: &Value, template: &Value) -> Vec<Value> {
        let params = trigger.get("imageChangeParams").unwrap_or(&Value::Null);
        let from = match text_at(params, "/repositoryName") {
            "" => params.get("from").cloned().unwrap_or_default(),
            repository => {
                let tag = Some(text_at(params, "/tag")).filter(|tag| !tag.is_empty()).unwrap_or("latest");
                json!({"kind": "ImageStreamTag", "name": format!("{repository}:{tag}")})
            }
        };
        let mut found = Vec::new();
        for (_, name) in items(params, "/containerNames") {
            let name = name.as_str().unwrap_or_default();
            let has = |list: &&&str| items(template, list).any(|(_, container)| text_at(container, "/name") == name);
            let Some(list) = CONTAINER_LISTS.iter().find(has) else {
                self.notes.push(format!("the template has no container `{name}`, and its image trigger is gone"));
                continue;
            };
            let path = format!("spec.template{}[?(@.name==\"{name}\")].image", list.replace('/', "."));
            let mut converted = json!({"from": from, "fieldPath": path});
            if params.get("automatic") != Some(&json!(true)) {
                converted["paused"] = json!(true);
            }
            found.push(converted);
        }
        found
    }
}
