//! What a spec asks for, beside what its fields say one by one.

use super::{CustomParams, DeploymentConfigSpec, IMAGE_CHANGE, ImageChangeParams, StrategyKind};

impl DeploymentConfigSpec {
    /// What it lacks to be carried out, for people: nothing is deployed then.
    pub fn not_carried_out(&self) -> Option<String> {
        let lacks = self.strategy.kind == StrategyKind::Custom
            && !self.strategy.deployer().is_some_and(CustomParams::names_something);
        lacks.then(|| "its strategy is Custom, and `customParams` names neither an image nor a command".to_owned())
    }

    /// How many pods the file asks for, if that is what says it.
    pub fn asked_replicas(&self) -> Option<u32> {
        self.replicas.filter(|_| self.autoscaler.is_none())
    }

    /// Whether a change of the template alone starts a deployment.
    pub fn has_config_change_trigger(&self) -> bool {
        self.triggers.iter().any(|trigger| trigger.kind == "ConfigChange")
    }

    /// The image triggers, also those whose stream the stage does not declare.
    pub fn declared_image_triggers(&self) -> impl Iterator<Item = &ImageChangeParams> {
        let of_images = self.triggers.iter().filter(|trigger| trigger.kind == IMAGE_CHANGE);
        of_images.filter_map(|trigger| trigger.image_change_params.as_ref())
    }

    /// The image triggers that follow a stream of the stage.
    pub fn image_triggers(&self) -> impl Iterator<Item = &ImageChangeParams> {
        self.declared_image_triggers().filter(|params| params.last_triggered_image.is_some())
    }

    /// Whether its first deployment needs no person: as upstream, every image trigger has brought an image by then, also one
    /// that is not automatic and so brings none by itself.
    pub fn starts_by_itself(&self) -> bool {
        self.image_triggers().all(ImageChangeParams::has_brought)
            && (self.has_config_change_trigger() || self.image_triggers().any(|params| params.automatic))
    }
}
