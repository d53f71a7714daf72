//! Keys of Kubernetes' `v1` objects besides pods.

use super::{Field, Shape, Type, any, flag, list, object, port, small_count, text, text_map, texts, word};

/// `apiVersion` and `kind` say which table applies; they are no part of the content.
pub(super) const API_VERSION: Field = text("apiVersion").forgotten();
pub(super) const KIND: Field = text("kind").forgotten();
/// What a server reports; ignored in files.
pub(super) const STATUS: Field = any("status").forgotten();
pub(super) const METADATA: Field = object("metadata", &OBJECT_META).required();

/// `ObjectMeta`: what a user says stays, what a server writes into exported files goes.
pub(super) const OBJECT_META: Shape = Shape {
    fields: &[
        text("name").required(),
        text_map("labels"),
        text_map("annotations"),
        text("namespace"),
        text("generateName"),
        any("creationTimestamp").forgotten(),
        any("deletionTimestamp").forgotten(),
        any("deletionGracePeriodSeconds").forgotten(),
        any("finalizers").forgotten(),
        any("generation").forgotten(),
        any("managedFields").forgotten(),
        any("ownerReferences").forgotten(),
        any("resourceVersion").forgotten(),
        any("selfLink").forgotten(),
        any("uid").forgotten(),
    ],
};

/// What all objects have.
pub(crate) const HEAD: Shape = Shape { fields: &[METADATA] };

pub(crate) const SERVICE: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &SERVICE_SPEC).required(), STATUS] };

const SERVICE_SPEC: Shape = Shape {
    fields: &[
        list("ports", &Type::Object(&SERVICE_PORT)),
        text_map("selector"),
        word("type", &["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
        text("externalName"),
        text("clusterIP"),
        texts("clusterIPs"),
        word("sessionAffinity", &["None", "ClientIP"]),
        any("sessionAffinityConfig"),
        flag("publishNotReadyAddresses"),
        flag("allocateLoadBalancerNodePorts").kept(),
        texts("externalIPs"),
        text("externalTrafficPolicy"),
        small_count("healthCheckNodePort"),
        text("internalTrafficPolicy"),
        texts("ipFamilies"),
        text("ipFamilyPolicy"),
        text("loadBalancerClass"),
        text("loadBalancerIP"),
        texts("loadBalancerSourceRanges"),
        text("trafficDistribution"),
    ],
};

const SERVICE_PORT: Shape = Shape {
    fields: &[
        text("name"),
        port("port").required(),
        Field::new("targetPort", Type::IntegerOrText),
        word("protocol", &["TCP", "UDP", "SCTP"]),
        small_count("nodePort"),
        text("appProtocol"),
    ],
};

pub(crate) const ENDPOINTS: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, list("subsets", &Type::Object(&SUBSET))] };

const SUBSET: Shape = Shape {
    fields: &[
        list("addresses", &Type::Object(&ENDPOINT_ADDRESS)),
        list("notReadyAddresses", &Type::Object(&ENDPOINT_ADDRESS)),
        list("ports", &Type::Object(&ENDPOINT_PORT)),
    ],
};

const ENDPOINT_ADDRESS: Shape =
    Shape { fields: &[text("ip").required(), text("hostname"), text("nodeName"), any("targetRef")] };

const ENDPOINT_PORT: Shape = Shape {
    fields: &[text("name"), port("port").required(), word("protocol", &["TCP", "UDP", "SCTP"]), text("appProtocol")],
};

pub(crate) const CONFIG_MAP: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, text_map("data"), text_map("binaryData"), flag("immutable")] };

pub(crate) const SECRET: Shape = Shape {
    fields: &[
        API_VERSION,
        KIND,
        METADATA,
        text("type"),
        Field::new("data", Type::Map(&Type::Secret)),
        Field::new("stringData", Type::Map(&Type::Secret)),
        flag("immutable"),
    ],
};

pub(crate) const PERSISTENT_VOLUME_CLAIM: Shape =
    Shape { fields: &[API_VERSION, KIND, METADATA, object("spec", &CLAIM_SPEC).required(), STATUS] };

const CLAIM_SPEC: Shape = Shape {
    fields: &[
        Field::new(
            "accessModes",
            Type::List(&Type::Word(&["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"])),
        )
        .required(),
        object("resources", &CLAIM_RESOURCES).required(),
        word("volumeMode", &["Filesystem", "Block"]),
        text("volumeName"),
        text("storageClassName").kept(),
        text("volumeAttributesClassName"),
        any("selector"),
        any("dataSource"),
        any("dataSourceRef"),
    ],
};

const CLAIM_RESOURCES: Shape = Shape {
    fields: &[
        Field::new("requests", Type::Map(&Type::Quantity)).required(),
        Field::new("limits", Type::Map(&Type::Quantity)),
    ],
};
