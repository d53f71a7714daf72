//! Keys of Kubernetes' pod template, as far as `core/v1` goes. What only a cluster understands is passed through.

use super::{
    Field, Shape, Type, any, count, flag, list, object, port, positive, small_count, text, text_map, texts, word,
};

pub(crate) const POD_TEMPLATE: Shape =
    Shape { fields: &[object("metadata", &TEMPLATE_META), object("spec", &POD_SPEC).required()] };

const TEMPLATE_META: Shape = Shape {
    fields: &[
        text_map("labels"),
        text_map("annotations"),
        any("name").forgotten(),
        any("namespace").forgotten(),
        any("generateName").forgotten(),
        any("creationTimestamp").forgotten(),
        any("finalizers").forgotten(),
    ],
};

const POD_SPEC: Shape = Shape {
    fields: &[
        list("containers", &Type::Object(&CONTAINER)).required(),
        list("initContainers", &Type::Object(&CONTAINER)),
        list("volumes", &Type::Object(&VOLUME)),
        word("restartPolicy", &["Always", "OnFailure", "Never"]),
        count("terminationGracePeriodSeconds").kept(),
        positive("activeDeadlineSeconds"),
        word("dnsPolicy", &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]),
        object("securityContext", &POD_SECURITY_CONTEXT),
        text("serviceAccountName"),
        text("serviceAccount"),
        flag("automountServiceAccountToken").kept(),
        text_map("nodeSelector"),
        text("nodeName"),
        flag("hostNetwork"),
        flag("hostPID"),
        flag("hostIPC"),
        flag("hostUsers").kept(),
        flag("shareProcessNamespace"),
        flag("enableServiceLinks").kept(),
        flag("setHostnameAsFQDN"),
        list("imagePullSecrets", &Type::Object(&LOCAL_REFERENCE)),
        text("hostname"),
        text("subdomain"),
        text("schedulerName"),
        text("priorityClassName"),
        Field::new("priority", Type::Integer(i32::MIN as i64, i32::MAX as i64)).kept(),
        text("preemptionPolicy"),
        text("runtimeClassName"),
        Field::new("overhead", Type::Map(&Type::Quantity)),
        object("resources", &RESOURCES),
        any("affinity"),
        any("dnsConfig"),
        any("ephemeralContainers"),
        any("hostAliases"),
        any("os"),
        any("readinessGates"),
        any("resourceClaims"),
        any("schedulingGates"),
        any("tolerations"),
        any("topologySpreadConstraints"),
    ],
};

const CONTAINER: Shape = Shape {
    fields: &[
        text("name").required(),
        text("image"),
        texts("command"),
        texts("args"),
        text("workingDir"),
        list("ports", &Type::Object(&CONTAINER_PORT)),
        list("env", &Type::Object(&ENV_VAR)),
        list("envFrom", &Type::Object(&ENV_FROM)),
        object("resources", &RESOURCES),
        list("volumeMounts", &Type::Object(&VOLUME_MOUNT)),
        object("livenessProbe", &PROBE),
        object("readinessProbe", &PROBE),
        object("startupProbe", &PROBE),
        object("lifecycle", &LIFECYCLE),
        object("securityContext", &SECURITY_CONTEXT),
        word("imagePullPolicy", &["Always", "IfNotPresent", "Never"]),
        text("terminationMessagePath"),
        word("terminationMessagePolicy", &["File", "FallbackToLogsOnError"]),
        flag("stdin"),
        flag("stdinOnce"),
        flag("tty"),
        text("restartPolicy"),
        any("restartPolicyRules"),
        any("resizePolicy"),
        any("volumeDevices"),
    ],
};

const CONTAINER_PORT: Shape = Shape {
    fields: &[
        port("containerPort").required(),
        text("name"),
        word("protocol", &["TCP", "UDP", "SCTP"]),
        small_count("hostPort"),
        text("hostIP"),
    ],
};

pub(crate) const ENV_VAR: Shape =
    Shape { fields: &[text("name").required(), text("value"), object("valueFrom", &ENV_SOURCE).kept()] };

const ENV_SOURCE: Shape = Shape {
    fields: &[
        object("configMapKeyRef", &KEY_REFERENCE),
        object("secretKeyRef", &KEY_REFERENCE),
        object("fieldRef", &FIELD_REFERENCE),
        object("resourceFieldRef", &RESOURCE_REFERENCE),
        any("fileKeyRef"),
    ],
};

const KEY_REFERENCE: Shape = Shape { fields: &[text("name").required(), text("key").required(), flag("optional")] };
const FIELD_REFERENCE: Shape = Shape { fields: &[text("fieldPath").required(), text("apiVersion")] };
const RESOURCE_REFERENCE: Shape =
    Shape { fields: &[text("resource").required(), text("containerName"), Field::new("divisor", Type::Quantity)] };
pub(super) const ENV_FROM: Shape = Shape {
    fields: &[text("prefix"), object("configMapRef", &OPTIONAL_REFERENCE), object("secretRef", &OPTIONAL_REFERENCE)],
};
const OPTIONAL_REFERENCE: Shape = Shape { fields: &[text("name").required(), flag("optional")] };
const LOCAL_REFERENCE: Shape = Shape { fields: &[text("name")] };

pub(super) const RESOURCES: Shape = Shape {
    fields: &[
        Field::new("limits", Type::Map(&Type::Quantity)),
        Field::new("requests", Type::Map(&Type::Quantity)),
        any("claims"),
    ],
};

const VOLUME_MOUNT: Shape = Shape {
    fields: &[
        text("name").required(),
        text("mountPath").required(),
        text("subPath"),
        text("subPathExpr"),
        flag("readOnly"),
        text("mountPropagation"),
        text("recursiveReadOnly"),
    ],
};

const PROBE: Shape = Shape {
    fields: &[
        object("exec", &EXEC).kept(),
        object("httpGet", &HTTP_GET).kept(),
        object("tcpSocket", &TCP_SOCKET).kept(),
        any("grpc"),
        small_count("initialDelaySeconds"),
        small_count("periodSeconds"),
        small_count("timeoutSeconds"),
        small_count("successThreshold"),
        small_count("failureThreshold"),
        positive("terminationGracePeriodSeconds"),
    ],
};

const LIFECYCLE: Shape = Shape {
    fields: &[
        object("postStart", &LIFECYCLE_HANDLER).kept(),
        object("preStop", &LIFECYCLE_HANDLER).kept(),
        text("stopSignal"),
    ],
};
const LIFECYCLE_HANDLER: Shape = Shape {
    fields: &[
        object("exec", &EXEC).kept(),
        object("httpGet", &HTTP_GET).kept(),
        object("tcpSocket", &TCP_SOCKET).kept(),
        object("sleep", &SLEEP).kept(),
    ],
};

const EXEC: Shape = Shape { fields: &[texts("command").required()] };
const HTTP_GET: Shape = Shape {
    fields: &[
        Field::new("port", Type::IntegerOrText).required(),
        text("path"),
        text("host"),
        word("scheme", &["HTTP", "HTTPS"]),
        list("httpHeaders", &Type::Object(&HTTP_HEADER)),
    ],
};
const HTTP_HEADER: Shape = Shape { fields: &[text("name").required(), text("value")] };
const TCP_SOCKET: Shape = Shape { fields: &[Field::new("port", Type::IntegerOrText).required(), text("host")] };
const SLEEP: Shape = Shape { fields: &[count("seconds")] };

/// Linux ids; 0 is root and therefore kept.
const fn id(name: &'static str) -> Field {
    Field::new(name, Type::Integer(0, i32::MAX as i64)).kept()
}

const POD_SECURITY_CONTEXT: Shape = Shape {
    fields: &[
        id("runAsUser"),
        id("runAsGroup"),
        id("fsGroup"),
        flag("runAsNonRoot"),
        text("fsGroupChangePolicy"),
        text("supplementalGroupsPolicy"),
        any("supplementalGroups"),
        any("sysctls"),
        any("seLinuxOptions"),
        text("seLinuxChangePolicy"),
        any("seccompProfile"),
        any("appArmorProfile"),
        any("windowsOptions"),
    ],
};

const SECURITY_CONTEXT: Shape = Shape {
    fields: &[
        id("runAsUser"),
        id("runAsGroup"),
        flag("runAsNonRoot").kept(),
        flag("privileged"),
        flag("readOnlyRootFilesystem"),
        flag("allowPrivilegeEscalation").kept(),
        any("capabilities"),
        text("procMount"),
        any("seLinuxOptions"),
        any("seccompProfile"),
        any("appArmorProfile"),
        any("windowsOptions"),
    ],
};

/// The sources that the local runtime has, and the names of the others.
const VOLUME: Shape = Shape {
    fields: &[
        text("name").required(),
        object("emptyDir", &EMPTY_DIR).kept(),
        object("hostPath", &HOST_PATH).kept(),
        object("configMap", &CONFIG_MAP_VOLUME).kept(),
        object("secret", &SECRET_VOLUME).kept(),
        object("persistentVolumeClaim", &CLAIM_VOLUME).kept(),
        any("awsElasticBlockStore"),
        any("azureDisk"),
        any("azureFile"),
        any("cephfs"),
        any("cinder"),
        any("csi"),
        any("downwardAPI"),
        any("ephemeral"),
        any("fc"),
        any("flexVolume"),
        any("flocker"),
        any("gcePersistentDisk"),
        any("gitRepo"),
        any("glusterfs"),
        any("image"),
        any("iscsi"),
        any("nfs"),
        any("photonPersistentDisk"),
        any("portworxVolume"),
        any("projected"),
        any("quobyte"),
        any("rbd"),
        any("scaleIO"),
        any("storageos"),
        any("vsphereVolume"),
    ],
};

/// Permission bits, such as 0644.
const fn mode(name: &'static str) -> Field {
    Field::new(name, Type::Integer(0, 0o777)).kept()
}

const EMPTY_DIR: Shape = Shape { fields: &[text("medium"), Field::new("sizeLimit", Type::Quantity)] };
const HOST_PATH: Shape = Shape { fields: &[text("path").required(), text("type")] };
const CONFIG_MAP_VOLUME: Shape = Shape {
    fields: &[
        text("name").required(),
        list("items", &Type::Object(&KEY_TO_PATH)),
        mode("defaultMode"),
        flag("optional"),
    ],
};
const SECRET_VOLUME: Shape = Shape {
    fields: &[
        text("secretName").required(),
        list("items", &Type::Object(&KEY_TO_PATH)),
        mode("defaultMode"),
        flag("optional"),
    ],
};
const KEY_TO_PATH: Shape = Shape { fields: &[text("key").required(), text("path").required(), mode("mode")] };
const CLAIM_VOLUME: Shape = Shape { fields: &[text("claimName").required(), flag("readOnly")] };
