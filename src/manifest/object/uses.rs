//! Which launchables an object names, and which of their programs run: of the repository's folders both are read.

use serde_json::Value;

use crate::manifest::findings::Findings;
use crate::manifest::image::{self, Image};
use crate::manifest::pod_template::{CONTAINER_LISTS, items, text_at};
use crate::manifest::program::{self, Place, ProgramUse};
use crate::manifest::stage_context::Runtime;
use crate::manifest::{deployment_config, image_stream};
use crate::model::object::{Kind, Location};

/// Where the user's own deployer is described.
pub(super) const DEPLOYER: &str = "/spec/strategy/customParams";

/// A launchable from the repository, and where it is named.
#[derive(Debug)]
pub(crate) struct ImageUse {
    /// In the object's content.
    pub(crate) pointer: String,
    /// The folder, normalised.
    pub(crate) folder: String,
    pub(crate) location: Location,
}

/// The launchables that an object names.
pub(super) fn image_uses(content: &Value, kind: &Kind, runtime: Runtime, findings: &mut Findings<'_>) -> Vec<ImageUse> {
    if *kind == Kind::ImageStream {
        let tags = image_stream::images(content);
        return tags.filter_map(|(pointer, name)| image_of_tag(name, &pointer, runtime, findings)).collect();
    }
    if *kind != Kind::DeploymentConfig {
        return Vec::new();
    }
    let Some(template) = content.pointer("/spec/template") else { return Vec::new() };
    let mut uses = Vec::new();
    for list in CONTAINER_LISTS {
        for (index, container) in items(template, list) {
            let name = text_at(container, "/image");
            if !name.trim().is_empty() {
                uses.extend(image_use(name, &format!("/spec/template{list}/{index}/image"), runtime, findings));
            }
            let has_command = items(container, "/command").next().is_some();
            if runtime == Runtime::Local && name == "host" && !has_command {
                let field = format!("/spec/template{list}/{index}/command");
                let message = "this is required: the image `host` has nothing of its own to run";
                findings.error(&field, "required", message);
            }
        }
    }
    for (pointer, hook) in deployment_config::hooks(content.get("spec").unwrap_or(&Value::Null)) {
        let name = text_at(hook, "/image");
        if !name.is_empty() {
            uses.extend(image_use(name, &format!("/spec{pointer}/image"), runtime, findings));
        }
    }
    let params = content.pointer(DEPLOYER).unwrap_or(&Value::Null);
    let name = text_at(params, "/image");
    if !name.is_empty() {
        uses.extend(image_use(name, &format!("{DEPLOYER}/image"), runtime, findings));
    }
    if runtime == Runtime::Local && name == "host" && items(params, "/command").next().is_none() {
        let message = "this is required: the image `host` has nothing of its own to run";
        findings.error(&format!("{DEPLOYER}/command"), "required", message);
    }
    uses
}

/// What is no launchable may well be in an image stream that was written for a cluster: whoever follows that tag waits.
fn image_of_tag(name: &str, pointer: &str, runtime: Runtime, findings: &mut Findings<'_>) -> Option<ImageUse> {
    match (runtime, image::parse(name)) {
        (Runtime::Local, Err(refusal)) => {
            let message =
                format!("the image `{name}` cannot run here, so that nothing follows this tag: {}", refusal.message);
            findings.warning(pointer, "image", message).hint = Some(refusal.hint.to_owned());
            None
        }
        _ => image_use(name, pointer, runtime, findings),
    }
}

/// What containers and hooks run of the launchables that their images name.
pub(super) fn program_uses(content: &Value, images: &[ImageUse], findings: &Findings<'_>) -> Vec<ProgramUse> {
    let mut uses = Vec::new();
    for image in images {
        let holder = image.pointer.trim_end_matches("/image");
        if holder == DEPLOYER {
            uses.extend(of_deployer(content, &image.folder, findings));
            continue;
        }
        if holder.starts_with("/spec/strategy/") {
            uses.extend(of_hook(content, holder, &image.folder, findings));
            continue;
        }
        let container = content.pointer(holder).unwrap_or(&Value::Null);
        let place = Place { folder: &image.folder, holder, container };
        let own = container.get("command").unwrap_or(&Value::Null);
        uses.extend(program::of_command(own, place, findings));
        let is_bare =
            |params: &Value| text_at(params, "/image").is_empty() && items(params, "/command").next().is_some();
        if holder == "/spec/template/spec/containers/0" && content.pointer(DEPLOYER).is_some_and(is_bare) {
            uses.extend(of_deployer(content, &image.folder, findings));
        }
        let hooks = deployment_config::hooks(content.get("spec").unwrap_or(&Value::Null));
        let in_here = |(_, hook): &(String, &Value)| {
            let is_its = text_at(hook, "/execNewPod/containerName") == text_at(container, "/name");
            is_its && text_at(hook, "/image").is_empty()
        };
        for (pointer, hook) in hooks.filter(in_here) {
            let place = Place { holder: &format!("/spec{pointer}/execNewPod"), ..place };
            let command = hook.pointer("/execNewPod/command").unwrap_or(&Value::Null);
            uses.extend(program::of_command(command, place, findings));
        }
    }
    uses
}

/// The program of the user's own deployer.
fn of_deployer(content: &Value, folder: &str, findings: &Findings<'_>) -> Option<ProgramUse> {
    let command = content.pointer(&format!("{DEPLOYER}/command")).unwrap_or(&Value::Null);
    program::of_command(command, Place { folder, holder: DEPLOYER, container: &Value::Null }, findings)
}

/// The program of a hook that has an image of its own.
fn of_hook(content: &Value, hook: &str, folder: &str, findings: &Findings<'_>) -> Option<ProgramUse> {
    let holder = format!("{hook}/execNewPod");
    let command = content.pointer(&format!("{holder}/command"))?;
    program::of_command(command, Place { folder, holder: &holder, container: &Value::Null }, findings)
}

pub(super) fn image_use(name: &str, pointer: &str, runtime: Runtime, findings: &mut Findings<'_>) -> Option<ImageUse> {
    let launchable = image::parse(name);
    if runtime == Runtime::Kubernetes {
        if launchable.is_ok() {
            let message = format!("the image `{name}` is a launchable, which only the local runtime runs");
            findings.error(pointer, "image", message).hint = Some("name an OCI image".to_owned());
        }
        return None;
    }
    match launchable {
        Ok(Image::Git(folder)) => {
            Some(ImageUse { pointer: pointer.to_owned(), folder, location: findings.location(pointer) })
        }
        Ok(Image::Archive | Image::Host) => None,
        Err(refusal) => {
            let message = format!("the image `{name}` cannot run here: {}", refusal.message);
            findings.error(pointer, "image", message).hint = Some(refusal.hint.to_owned());
            None
        }
    }
}
