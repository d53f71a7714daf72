//! Keys of Kubernetes' `HorizontalPodAutoscaler`, as far as launchway reads them.

use super::{Shape, any, object, positive, small_count, text};

pub(crate) const AUTOSCALER_SPEC: Shape = Shape {
    fields: &[
        object("scaleTargetRef", &TARGET).required(),
        small_count("minReplicas").kept(),
        positive("maxReplicas").required(),
        any("targetCPUUtilizationPercentage"),
        any("metrics"),
        any("behavior"),
    ],
};

const TARGET: Shape = Shape { fields: &[text("apiVersion"), text("kind").required(), text("name").required()] };
