use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use proptest::prelude::*;

use super::*;
use crate::manifest::files::{Content, FileKind, LARGEST};
use crate::model::object::{Kind, ObjectKey};

/// A tree in memory, with ids made from content.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree(BTreeMap<String, (FileKind, String)>);

impl Tree {
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.set(path, Some(text));
        }
        tree
    }

    fn set(&mut self, path: &str, text: Option<&str>) {
        match text {
            Some(text) => {
                let executable = path.contains("bin/") && text != "plain";
                self.0.insert(path.into(), (FileKind::File { executable }, text.into()))
            }
            None => self.0.remove(path),
        };
    }

    fn entry(&self, path: &str) -> Option<FileEntry> {
        let (kind, text) = self.0.get(path)?;
        Some(FileEntry { path: path.into(), kind: *kind, id: id(text) })
    }

    pub(super) fn read(&self) -> Snapshot {
        Snapshot::read(self, &options()).expect("a tree in memory is readable")
    }

    /// What differs from another tree.
    fn changed_since(&self, before: &Tree) -> Vec<Changed> {
        let paths: BTreeSet<_> = self.0.keys().chain(before.0.keys()).collect();
        let differs = |path: &&&String| self.entry(path) != before.entry(path);
        paths.iter().filter(differs).map(|path| ((*path).clone(), self.entry(path))).collect()
    }
}

fn id(content: &impl Hash) -> String {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn options() -> Options {
    Options { repository: RepositoryName::new("shop"), seed: Seed::NONE }
}

impl Files for Tree {
    fn entries(&self) -> Result<Vec<FileEntry>> {
        Ok(self.0.keys().filter_map(|path| self.entry(path)).collect())
    }

    fn read(&self, entry: &FileEntry) -> Result<Content> {
        Ok(Content::Whole(self.0[&entry.path].1.clone().into_bytes()))
    }

    fn limit(&self) -> u64 {
        LARGEST
    }

    fn tree_id(&self, path: &str) -> Result<Option<String>> {
        let folder = if path.is_empty() { String::new() } else { format!("{path}/") };
        let inside: Vec<_> =
            self.0.iter().filter(|(path, _)| path.starts_with(&folder)).map(|(p, f)| (p, &f.1)).collect();
        Ok((!inside.is_empty()).then(|| id(&inside)))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        Ok(self.0.get(path).map(|(kind, _)| *kind))
    }

    fn link_target(&self, path: &str) -> Result<Option<String>> {
        Ok(self.0.get(path).map(|(_, target)| target.clone()))
    }
}

fn config(name: &str, image: &str) -> String {
    format!(
        "apiVersion: apps.openshift.io/v1\nkind: DeploymentConfig\nmetadata: {{name: {name}}}\nspec:\n  replicas: 1\n  \
         template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      containers:\n      - name: {name}\n        \
         image: {image}\n"
    )
}

const SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";
const SHIPYARD: &str = "apiVersion: spec.keptn.sh/0.2.2\nkind: Shipyard\nmetadata: {name: shop}\nspec:\n  stages:\n  - name: dev\n    sequences: [{name: delivery, tasks: [{name: deployment}]}]\n  - name: production\n    sequences: [{name: delivery, tasks: [{name: deployment}]}]\n";

fn shop() -> Tree {
    Tree::of(&[
        ("deploy/web.yaml", &config("web", "git:web")),
        ("deploy/service.yaml", SERVICE),
        ("web/bin/launch", "#!/bin/sh\n"),
        ("README.md", "hello"),
    ])
}

pub(super) fn messages(snapshot: &Snapshot) -> Vec<String> {
    snapshot.project().problems.iter().map(ToString::to_string).collect()
}

fn project(tree: &Tree) -> Arc<Project> {
    let snapshot = tree.read();
    assert_eq!(messages(&snapshot), [] as [&str; 0]);
    snapshot.project().project.clone().expect("nothing is wrong")
}

fn key(kind: Kind, name: &str) -> ObjectKey {
    ObjectKey { kind, name: name.into() }
}

#[test]
fn a_repository_without_ceremony_is_a_project_of_one_stage() {
    let project = project(&shop());
    assert_eq!(project.name.as_str(), "shop");
    assert_eq!(project.stages.len(), 1);
    let stage = &project.stages[0];
    assert_eq!((stage.name.as_str(), stage.destination.namespace.as_str()), ("default", "shop-default"));
    assert_eq!(stage.delivery.as_deref(), Some("delivery"));
    assert_eq!(stage.objects.len(), 2);
    assert_eq!(stage.objects.get(&key(Kind::Service, "web")).unwrap().service.as_str(), "web", "by its selector");
}

#[test]
fn a_folders_id_becomes_part_of_the_image_and_of_the_digest() {
    let mut tree = shop();
    let before = project(&tree);
    let of =
        |project: &Project| Arc::clone(project.stages[0].objects.get(&key(Kind::DeploymentConfig, "web")).unwrap());
    let image = of(&before).content.at("/spec/template/spec/containers/0/image").unwrap();
    let expected = tree.tree_id("web").expect("readable").expect("there");
    assert_eq!(image, format!("git:web@{expected}"));
    tree.set("README.md", Some("new"));
    assert_eq!(of(&project(&tree)), of(&before), "other files do not matter");
    tree.set("web/bin/launch", Some("new"));
    assert_ne!(of(&project(&tree)).digest, of(&before).digest);
}

#[test]
fn stages_have_their_paths_and_settings() {
    let tree = Tree::of(&[
        ("shipyard.yaml", SHIPYARD),
        (
            "launchway.yaml",
            "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: acme}\nspec:\n  statuses: hooks\n  stages:\n    dev: {path: ./dev/}\n    production: {path: prod, namespace: live, prune: false}\n",
        ),
        ("dev/a.yaml", &config("web", "host").replace("image: host", "image: host\n        command: [a]")),
        ("prod/a.yaml", &config("web", "git:app")),
        ("app/bin/launch", "1"),
        ("other/broken.yaml", "apiVersion: v1\nkind: [\n"),
    ]);
    let project = project(&tree);
    let stages: Vec<_> = project
        .stages
        .iter()
        .map(|stage| (stage.name.as_str(), stage.destination.namespace.as_str(), stage.prune, stage.objects.len()))
        .collect();
    assert_eq!(stages, [("dev", "acme-dev", true, 1), ("production", "live", false, 1)]);
}

#[test]
fn a_program_that_a_link_takes_out_of_its_launchable_is_refused() {
    let there = "a.yaml:11:16: error: spec.template.spec.containers[0].image: the link `";
    let table = [
        ("web", "web/bin/launch", "/bin/true", true),
        ("web", "web/bin/launch", "../../other/launch", true),
        ("web", "web/bin/launch", ".././../web/main", true),
        ("web", "web/bin/launch", "../main", false),
        ("web", "web/bin/launch", "main", false),
        ("web", "web/bin/launch", "../lib/../../../web/main", false), // `lib` may be a link
        ("web", "web/bin", "/usr/bin", true),
        ("web", "web/bin", "../tools", true),
        ("web", "web/bin", "tools", false),
        ("apps/web", "apps/web/bin/launch", "../../main", true),
        ("apps/web", "apps/web/bin/launch", "../main", false),
        (".", "bin/launch", "../main", false),
        (".", "bin/launch", "../../main", true),
    ];
    for (folder, link, target, is_refused) in table {
        for build in [false, true] {
            let mut tree = Tree::of(&[("a.yaml", &config("web", &format!("git:{folder}"))), ("main", "1")]);
            tree.set(&format!("{folder}/main").replace("./", ""), Some("1"));
            if build && link.ends_with("launch") {
                tree.set(&link.replace("launch", "build"), Some("1"));
            }
            tree.0.insert(link.into(), (FileKind::Symlink, target.into()));
            let found = messages(&tree.read());
            let expected = format!("{there}{link}` leads out of the launchable");
            let is_told = matches!(&found[..], [problem] if problem.starts_with(&expected));
            assert!(if is_refused { is_told } else { found.is_empty() }, "{link} to {target}: {found:?}");
        }
    }
}

#[test]
fn all_problems_are_told_at_once_with_their_places() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);
    let with_tool = config("web", "git:web").replace("image:", "command: [bin/tool]\n        image:");
    let cases: [Case<'_>; 17] = [
        (
            &[("a.yaml", &config("web", "git:web")), ("web/main.py", "")],
            &["a.yaml:11:16: error: spec.template.spec.containers[0].image: there is no `web/bin/launch`"],
        ),
        (
            &[("a.yaml", &config("web", "git:web")), ("web/bin/launch", "plain")],
            &["a.yaml:11:16: error: spec.template.spec.containers[0].image: `web/bin/launch` is not executable"],
        ),
        (
            &[("a.yaml", &with_tool), ("web/bin/launch", "1")],
            &["a.yaml:11:19: error: spec.template.spec.containers[0].command[0]: the command is not there"],
        ),
        (&[("a.yaml", &with_tool), ("web/bin/build", "1")], &[]),
        (
            &[("a.yaml", &config("web", "git:nowhere"))],
            &["a.yaml:11:16: error: spec.template.spec.containers[0].image: the repository has no folder `nowhere`"],
        ),
        (
            &[("a.yaml", &config("web", "nginx:1"))],
            &["a.yaml:11:16: error: spec.template.spec.containers[0].image: the image `nginx:1` cannot run here"],
        ),
        (
            &[("a.yaml", SERVICE), ("b.yaml", SERVICE)],
            &["b.yaml:1:1: error: Service/web is declared twice in the same stage (the other one is at a.yaml:1:1"],
        ),
        (&[("a.yaml", "kind: Service\napiVersion: v1\nmetadata: {name: a}\nspec: [")], &["a.yaml:"]),
        (&[("a.yaml", "x: [")], &["a.yaml:1:4: warning: "]),
        (
            &[(
                "launchway.yaml",
                "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: a}\nspec: {stages: {x: {path: y}}, foo: 1}\n",
            )],
            &[
                "launchway.yaml:4:17: error: the shipyard has no stage `x`",
                "launchway.yaml:4:27: error: the repository has no folder `y`",
                "launchway.yaml:4:32: error: spec.foo: the key `foo` is not known",
            ],
        ),
        (
            &[(
                "launchway.yaml",
                "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: a}\nspec: {previews: {stage: x, max: 0}}\n",
            )],
            &[
                "launchway.yaml:4:26: error: the shipyard has no stage `x`",
                "launchway.yaml:4:34: error: spec.previews.max: 0 is not a number from 1 to 50",
            ],
        ),
        (
            &[(
                "launchway.yaml",
                "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: a}\nspec: {previews: {}}\n",
            )],
            &["launchway.yaml:4:8: error: the shipyard has no stage `dev`"],
        ),
        (
            &[("a.yaml", "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\n")],
            &["a.yaml:2:1: warning: kind: StatefulSet (apps/v1) is not applied on the local runtime"],
        ),
        (
            &[(
                "a.yaml",
                "apiVersion: v1\nkind: Template\nparameters:\n- {name: A, required: true}\n- {name: B, required: true}\nobjects: []\n",
            )],
            &[
                "a.yaml:4:3: error: parameters[0]: the parameter `A` is required, and has no value in the stage `default`",
                "a.yaml:5:3: error: parameters[1]: the parameter `B` is required, and has no value in the stage `default`",
            ],
        ),
        (
            &[("a.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n")],
            &["a.yaml:1:1: error: this is a Git LFS pointer"],
        ),
        (
            &[("a.json", "{\"kind\": 1, \"kind\": 2, \"apiVersion\": 3}")],
            &["a.json:1:13: error: the key `kind` stands here a second time"],
        ),
        (
            &[(
                "a.yaml",
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n  data: {n: 1}\n",
            )],
            &["a.yaml:7:13: error: data.n: must be text, but `1` is read as a number (put it in quotes: \"1\")"],
        ),
    ];
    for (files, expected) in cases {
        let found = messages(&Tree::of(files).read());
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }
}

const TEMPLATE: &str = "apiVersion: template.openshift.io/v1\nkind: Template\nparameters:\n- {name: COLOR, value: white}\n- \
                        {name: KEY, generate: expression, from: '[a-z]{12}'}\nobjects:\n- apiVersion: v1\n  kind: ConfigMap\n  \
                        metadata: {name: app}\n  data: {color: '${COLOR}', key: '${KEY}'}\n";

/// A shop of two stages that share all files; `settings` are those of production.
fn two_stages(settings: &str) -> Tree {
    let project = format!(
        "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{stages: {{production: {{{settings}}}}}}}\n"
    );
    let mut tree = shop();
    tree.set("shipyard.yaml", Some(SHIPYARD));
    tree.set("launchway.yaml", Some(&project));
    tree
}

/// What a stage's config map of the template says.
fn map_of(snapshot: &Snapshot, stage: &str) -> Value {
    let project = snapshot.project().project.clone().expect("nothing is wrong");
    let stage = project.stage(&stage.into()).expect("declared");
    stage.objects.get(&key(Kind::ConfigMap, "app")).expect("declared").content.at("/data").expect("data")
}

#[test]
fn a_template_has_the_values_of_each_stage() {
    let mut tree = two_stages("parameters: {COLOR: blue, UNUSED: 1}");
    tree.set("deploy/app.yaml", Some(TEMPLATE));
    let first = tree.read();
    assert_eq!(messages(&first), [] as [&str; 0]);
    let (dev, production) = (map_of(&first, "dev"), map_of(&first, "production"));
    assert_eq!((&dev["color"], &production["color"]), (&"white".into(), &"blue".into()));
    assert_ne!(dev["key"], production["key"]);
    let before = tree.clone();
    let red = two_stages("parameters: {COLOR: red}");
    tree.set("launchway.yaml", Some(&red.0["launchway.yaml"].1));
    let next = first.update(&tree.changed_since(&before), &tree, &options()).expect("readable");
    assert_eq!(map_of(&next, "production")["color"], "red", "another value is read");
    assert_eq!((map_of(&next, "dev"), &map_of(&next, "production")["key"]), (dev, &production["key"]));
}

#[test]
fn a_stage_on_kubernetes_takes_what_the_local_runtime_lacks() {
    let route = "apiVersion: route.openshift.io/v1\nkind: Route\nmetadata: {name: web, namespace: x}\nspec: {to: {name: web}}\nstatus: {}\n";
    let udp = "apiVersion: v1\nkind: Service\nmetadata: {name: dns}\nspec: {selector: {app: web}, ports: [{port: 53, protocol: UDP}]}\n";
    let config = config("web", "nginx:1") + "      volumes: [{name: a, nfs: {server: a, path: /}}]\n";
    let files = [("live/route.yaml", route), ("live/dns.yaml", udp), ("live/web.yaml", config.as_str())];
    let mut tree = two_stages("path: live, runtime: kubernetes");
    files.iter().for_each(|(path, text)| tree.set(path, Some(text)));
    tree.set("deploy/dev.yaml", None);
    let told = |tree: &Tree| {
        let snapshot = tree.read();
        let errors = snapshot.project().problems.iter().filter(|problem| problem.is_error()).count();
        (snapshot, errors)
    };
    // The other stage is the whole repository's, and local.
    assert_eq!(told(&tree).1, 3, "image, volume and protocol are refused there");
    let dev = tree.0["launchway.yaml"].1.replace("{production:", "{dev: {path: deploy}, production:");
    tree.set("launchway.yaml", Some(&dev));
    let (snapshot, errors) = told(&tree);
    assert_eq!(errors, 0, "{:#?}", messages(&snapshot));
    let project = snapshot.project().project.clone().expect("nothing is wrong");
    let production = project.stage(&"production".into()).expect("declared");
    assert!(!production.destination.is_local());
    let route = key(Kind::Other("route.openshift.io/v1/Route".into()), "web");
    let content = production.objects.get(&route).expect("declared").content.value();
    assert_eq!(content.to_string(), r#"{"spec":{"to":{"name":"web"}},"metadata":{"name":"web"}}"#);
    assert_eq!(production.objects.len(), 3);
    let told = messages(&snapshot);
    assert!(told.iter().any(|told| told.contains("nothing can be deployed to Kubernetes yet")), "{told:#?}");
    tree.set("live/bad.yaml", Some(&self::config("bad", "git:web")));
    let told = messages(&tree.read());
    assert!(
        told.iter().any(|told| told.contains("`git:web` is a launchable, which only the local runtime runs")),
        "{told:#?}"
    );
}

const CART: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: cart\n  annotations:\n    \
                    launchway.dev/strategy: '{canaryParams: {steps: [{weight: 5}]}}'\nspec:\n  selector: {matchLabels: {app: cart}}\n  \
                    template:\n    metadata: {labels: {app: cart}}\n    spec: {containers: [{name: cart, image: 'git:web'}]}\n";

#[test]
fn a_stage_deploys_by_the_strategy_of_its_deployment_task() {
    let mut tree = two_stages("path: ''");
    tree.set("deploy/cart.yaml", Some(CART));
    let by = |strategy: &str| {
        let last = SHIPYARD.rfind("{name: deployment}").expect("production's");
        let task = format!("{{name: deployment, properties: {{deploymentstrategy: {strategy}}}}}");
        format!("{}{task}{}", &SHIPYARD[..last], &SHIPYARD[last + "{name: deployment}".len()..])
    };
    let strategies = |snapshot: &Snapshot| -> Vec<[Value; 2]> {
        let project = snapshot.project().project.clone().expect("nothing is wrong");
        let of = |stage: &str, name: &str| {
            let stage = project.stage(&stage.into()).expect("declared");
            let config = stage.objects.get(&key(Kind::DeploymentConfig, name)).expect("declared");
            ["type", "overrides"].map(|it| config.content.at(&format!("/spec/strategy/{it}")).unwrap_or_default())
        };
        [("dev", "web"), ("dev", "cart"), ("production", "web"), ("production", "cart")].map(|(a, b)| of(a, b)).into()
    };
    let own = || [Value::from("Rolling"), Value::Null];
    let canary = || [Value::from("Canary"), Value::from("Rolling")];
    let direct = tree.read();
    assert_eq!(strategies(&direct), [own(), own(), own(), own()]);
    let unused = "`canaryParams` has no effect with the strategy Rolling";
    assert!(messages(&direct).iter().all(|told| told.contains(unused)), "{:#?}", messages(&direct));
    let before = tree.clone();
    tree.set("shipyard.yaml", Some(&by("canary")));
    let next = direct.update(&tree.changed_since(&before), &tree, &options()).expect("readable");
    assert_eq!(strategies(&next), [own(), own(), canary(), canary()]);
    assert_eq!(
        messages(&next),
        [
            "deploy/cart.yaml:1:1: warning: no Service of stage `production` selects these pods, and its `deploymentstrategy` asks for Canary: only pods are exchanged so, and no traffic"
        ],
        "and what one stage has no use for is another's"
    );
    let before = tree.clone();
    tree.set("deploy/web.yaml", Some(&config("web", "git:web").replace("replicas: 1", "replicas: 2")));
    tree.set("deploy/other.yaml", Some(&SERVICE.replace("web", "cart")));
    let next = next.update(&tree.changed_since(&before), &tree, &options()).expect("readable");
    assert_eq!(strategies(&next), [own(), own(), canary(), canary()]);
    assert_eq!(messages(&next), [] as [&str; 0]);
    tree.set("shipyard.yaml", Some(&by("user_managed")));
    assert_eq!(strategies(&tree.read()), [own(), own(), own(), own()]);
}

#[test]
fn a_symlink_is_refused() {
    let mut tree = shop();
    tree.0.insert("deploy/link.yaml".into(), (FileKind::Symlink, "web.yaml".into()));
    assert_eq!(
        messages(&tree.read())[0].split(" (").next(),
        Some("deploy/link.yaml:1:1: error: this is no regular file")
    );
}

#[test]
fn unknown_keys_in_users_formats_are_warnings_unless_the_project_is_strict() {
    let mut tree = shop();
    tree.set("deploy/web.yaml", Some(&config("web", "git:web").replace("replicas: 1", "replica: 1")));
    let lenient = tree.read();
    assert!(lenient.project().project.is_some());
    assert_eq!(
        messages(&lenient),
        ["deploy/web.yaml:5:3: warning: spec.replica: the key `replica` is not known (did you mean `replicas`?)"]
    );
    tree.set(
        "launchway.yaml",
        Some("apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: a}\nspec: {strict: true}\n"),
    );
    assert!(tree.read().project().project.is_none());
}

#[test]
fn a_glob_that_finds_nothing_is_told_with_its_place() {
    let project = |include: &str| {
        format!("apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: a}}\nspec:\n  include: {include}\n")
    };
    let idle = |column: u32, glob: &str| {
        format!(
            "launchway.yaml:5:{column}: warning: spec.include[1]: no file that declares something matches `{glob}` (paths \
             begin at the root of the repository; `*` stops at a slash, `**` is any folders)"
        )
    };
    for (include, expected) in [
        ("['deploy/**', 'web/**']", vec![idle(26, "web/**")]),
        ("['deploy/**', '*.yml']", vec![idle(26, "*.yml")]),
        ("['**/web.yaml', 'deploy/service.*']", vec![]),
        ("['deploy/*.yaml', 'shipyard.yaml', 'launchway.yaml']", vec![]),
    ] {
        let mut tree = shop();
        tree.set("launchway.yaml", Some(&project(include)));
        tree.set("shipyard.yaml", Some(SHIPYARD));
        let snapshot = tree.read();
        assert_eq!(messages(&snapshot), expected, "{include}");
        assert!(snapshot.project().project.is_some(), "it is deployed all the same");
    }
    let mut tree = shop();
    tree.set("launchway.yaml", Some(&project("['deploy/**', 'later/*.yaml']")));
    let before = (tree.read(), tree.clone());
    assert_eq!(messages(&before.0).len(), 1);
    tree.set("later/map.yaml", Some("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"));
    let after = before.0.update(&tree.changed_since(&before.1), &tree, &options()).expect("readable");
    assert_eq!(messages(&after), [] as [&str; 0]);
}

#[test]
fn two_stages_cannot_share_a_namespace() {
    let tree = Tree::of(&[
        ("shipyard.yaml", SHIPYARD),
        (
            "launchway.yaml",
            "apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {name: a}\nspec: {stages: {dev: {namespace: x}, production: {namespace: x}}}\n",
        ),
    ]);
    let found = messages(&tree.read());
    assert!(found[0].contains("both use the namespace `x`"), "{found:?}");
}

#[test]
fn files_that_are_followed_are_part_of_the_template() {
    let following = |what: &str| {
        let annotations = format!("metadata: {{name: web, annotations: {{launchway.dev/trigger-on: '{what}'}}}}");
        let mut tree = shop();
        tree.set("deploy/web.yaml", Some(&config("web", "git:web").replace("metadata: {name: web}", &annotations)));
        tree.set("conf/a.conf", Some("1"));
        tree.set("conf/b/c.conf", Some("1"));
        tree
    };
    let content = |tree: &Tree| {
        let web = project(tree).stages[0].objects.get(&key(Kind::DeploymentConfig, "web")).expect("declared").clone();
        web.content.at("/spec/template/metadata/annotations/launchway.dev~1content")
    };
    for (what, changed, differs) in [
        ("git:conf/a.conf", "conf/a.conf", true),
        ("git:conf/a.conf", "conf/b/c.conf", false),
        ("git:conf", "conf/b/c.conf", true),
        ("git:conf", "conf/new.conf", true),
        ("git:conf/*.conf", "conf/a.conf", true),
        ("git:conf/*.conf", "conf/b/c.conf", false),
        ("git:conf/**/*.conf", "conf/b/new.conf", true),
        ("configmaps,git:README.md", "README.md", true),
        ("git:.", "README.md", true),
        ("configmaps", "README.md", false),
    ] {
        let mut tree = following(what);
        let (before, snapshot, was) = (tree.clone(), tree.read(), content(&tree));
        tree.set(changed, Some("2"));
        assert!(was.is_some() && (content(&tree) != was) == differs, "{what} {changed}");
        let updated = snapshot.update(&tree.changed_since(&before), &tree, &options()).expect("readable");
        assert_eq!(updated.project(), tree.read().project(), "{what} {changed}");
    }
    for (what, expected) in [
        ("git:nowhere", "deploy/web.yaml:3:63: error: the repository has no file and no folder `nowhere`"),
        ("git:conf/*.txt", "deploy/web.yaml:3:63: warning: no file matches `git:conf/*.txt`"),
        (
            "git:../x",
            "deploy/web.yaml:3:63: error: metadata.annotations.launchway.dev/trigger-on: `git:../x` names no files",
        ),
        ("git:[", "deploy/web.yaml:3:63: error: metadata.annotations.launchway.dev/trigger-on: `git:[` names no files"),
        ("secret", "deploy/web.yaml:3:63: error: metadata.annotations.launchway.dev/trigger-on: `secret` is nothing"),
    ] {
        let found = messages(&following(what).read());
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:#?}\n{expected}");
    }
}

#[test]
fn a_service_may_select_by_the_label_that_pods_of_a_deployment_config_have_by_themselves() {
    let front = "apiVersion: v1\nkind: Service\nmetadata: {name: front}\nspec: {selector: {deploymentconfig: web}, ports: [{port: 80}]}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
                      template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'git:web'}]}\n";
    for (web, expected) in [(config("web", "git:web").as_str(), "web"), (deployment, "shared")] {
        let tree = Tree::of(&[("web.yaml", web), ("front.yaml", front), ("web/bin/launch", "1")]);
        let project = tree.read().project().project.clone().expect("nothing is wrong");
        let service = project.stages[0].objects.get(&key(Kind::Service, "front")).expect("declared").service.clone();
        assert_eq!(service.as_str(), expected, "{web}");
    }
}

const AUTOSCALER: &str = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
                          scaleTargetRef: {apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, name: web}\n  \
                          minReplicas: 1\n  maxReplicas: 9\n";

#[test]
fn an_autoscaler_takes_the_number_of_pods_out_of_the_hands_of_its_target() {
    let not_applied = "hpa.yaml:2:1: warning: kind: HorizontalPodAutoscaler (autoscaling/v2) is not applied on the local \
                       runtime (launchway does not scale by load here";
    let mut tree = shop();
    tree.set("hpa.yaml", Some(AUTOSCALER));
    let snapshot = tree.read();
    let found = messages(&snapshot);
    assert!(found.len() == 1 && found[0].starts_with(not_applied), "{found:#?}");
    let project = snapshot.project().project.clone().expect("nothing is wrong");
    let web = project.stages[0].objects.get(&key(Kind::DeploymentConfig, "web")).expect("declared").clone();
    assert_eq!(web.content.at("/spec/autoscaler"), Some("web".into()));
    assert_eq!(web.autoscaled_at.as_ref().map(ToString::to_string).as_deref(), Some("hpa.yaml:1:1"));
    let said = config("web", "git:web").replace("replicas: 1", "replicas: 1\n  autoscaler: mine");
    let project =
        Tree::of(&[("a.yaml", &said), ("web/bin/launch", "1")]).read().project().project.clone().expect("usable");
    let web = project.stages[0].objects.get(&key(Kind::DeploymentConfig, "web")).expect("declared");
    assert_eq!(web.content.at("/spec/autoscaler"), None, "no file says that of itself");
    let other = AUTOSCALER.replace("{name: web}", "{name: other}");
    for (text, expected) in [
        (
            AUTOSCALER.replace("name: web}\n  min", "name: api}\n  min"),
            "hpa.yaml:5:84: warning: stage `default` declares no DeploymentConfig/api",
        ),
        (
            AUTOSCALER.replace("apps.openshift.io/v1, kind: DeploymentConfig", "apps/v1, kind: Deployment"),
            "hpa.yaml:5:65: warning: stage `default` declares no Deployment/web, so that this autoscaler scales nothing \
             (DeploymentConfig/web is declared at deploy/web.yaml:1:1",
        ),
        (
            format!("{AUTOSCALER}---\n{other}"),
            "hpa.yaml:13:84: error: HorizontalPodAutoscaler/other scales DeploymentConfig/web, which \
             HorizontalPodAutoscaler/web scales already (the other one is at hpa.yaml:1:1",
        ),
        (
            AUTOSCALER.replace("minReplicas: 1", "minReplicas: 10"),
            "hpa.yaml:7:16: error: spec.maxReplicas: 9 is less than minReplicas, which is 10",
        ),
    ] {
        tree.set("hpa.yaml", Some(&text));
        let found = messages(&tree.read());
        assert!(found.iter().any(|found| found.starts_with(expected)), "{found:#?}\n{expected}");
    }
}

#[test]
fn what_pods_need_and_no_file_declares_is_told_where_it_is_named() {
    let reading = |more: &str| config("web", "git:web").replace("image:", &format!("{more}\n        image:"));
    let task = "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: test}\nspec: {image: 'git:web', command: [a], \
                env: [{name: A, valueFrom: {secretKeyRef: {name: keys, key: a}}}]}\n";
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\n";
    let told = |web: &str, more: &str| {
        let mut tree = shop();
        tree.set("deploy/web.yaml", Some(web));
        tree.set("more.yaml", Some(more));
        messages(&tree.read())
    };
    let missing = told(&reading("envFrom: [{configMapRef: {name: colors}}, {secretRef: {name: keys}}]"), map);
    let expected = [
        "deploy/web.yaml:11:41: warning: stage `default` declares no ConfigMap/colors, without which no pod starts here (did \
         you mean `colours`?)",
        "deploy/web.yaml:11:70: warning: stage `default` declares no Secret/keys, without which no pod starts here (declare \
         it, or write `optional: true` beside its name)",
    ];
    assert_eq!(missing, expected);
    let of_task = told(&reading(""), task);
    assert!(of_task.len() == 1 && of_task[0].starts_with("more.yaml:4:"), "{of_task:#?}");
    let map = format!("{map}data: {{red: '1'}}\n");
    let of = |key: &str, more: &str| {
        reading(&format!("env: [{{name: A, valueFrom: {{configMapKeyRef: {{name: colours, key: {key}{more}}}}}}}]"))
    };
    let misspelt = "deploy/web.yaml:11:75: warning: ConfigMap/colours has no key `rad`, without which no pod starts here (did you mean \
                    `red`? It is declared at more.yaml:1:1)";
    assert_eq!(told(&of("rad", ""), &map), [misspelt]);
    for (key, more) in [("red", ""), ("rad", ", optional: true")] {
        assert_eq!(told(&of(key, more), &map), [] as [&str; 0], "{key}{more}");
    }
    for fine in ["[{configMapRef: {name: colours}}]", "[{configMapRef: {name: colors, optional: true}}]"] {
        assert_eq!(told(&reading(&format!("envFrom: {fine}")), &map), [] as [&str; 0], "{fine}");
    }
}

/// Paths and contents from which histories are drawn: each path may be absent or hold one of the texts.
fn possibilities() -> Vec<(&'static str, Vec<String>)> {
    let project =
        |spec: &str| format!("apiVersion: launchway.dev/v1\nkind: Project\nmetadata: {{name: a}}\nspec: {spec}\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
    let reading = config("web", "git:web").replace("image:", "envFrom: [{configMapRef: {name: m}}]\n        image:");
    let follows = reading.replace(
        "metadata: {name: web}",
        "metadata: {name: web, annotations: {launchway.dev/trigger-on: 'configmaps, git:lib, git:web/*.py, git:README.md'}}",
    );
    let optional = reading.replace("{name: m}", "{name: m, optional: true}");
    let keyed = config("web", "git:web")
        .replace("image:", "env: [{name: A, valueFrom: {configMapKeyRef: {name: m, key: a}}}]\n        image:");
    let leader = config("all", "git:web").replacen(
        "\nspec:\n",
        "\nspec:\n  strategy: {type: Custom, customParams: {command: [a]}}\n",
        1,
    );
    let controller = |name: &str, leader: &str| {
        let labels = format!("{{name: {name}, labels: {{openshift.io/deployment-config.name: {leader}}}}}");
        config(name, "git:web")
            .replace("apps.openshift.io/v1\nkind: DeploymentConfig", "v1\nkind: ReplicationController")
            .replace(&format!("metadata: {{name: {name}}}"), &format!("metadata: {labels}"))
            .replace("app: ", "region: ")
    };
    let tool = reading.replace("envFrom:", "command: [bin/tool]\n        envFrom:");
    let task =
        "apiVersion: launchway.dev/v1\nkind: Task\nmetadata: {name: test}\nspec: {image: 'git:web', command: [a]}\n";
    vec![
        (
            "launchway.yaml",
            vec![
                project("{}"),
                project("{strict: true}"),
                project("{stages: {dev: {path: d}, production: {path: p}}}"),
                project("{exclude: ['d/*']}"),
                project("{include: ['d/web.*', '**/map.yaml', 'shipyard.yaml']}"),
                project("{stages: {production: {parameters: {COLOR: red}}}}"),
                project("{stages: {production: {runtime: kubernetes}}}"),
                "a: [".into(),
            ],
        ),
        ("shipyard.yaml", vec![SHIPYARD.into(), SHIPYARD.replace("production", "live"), "x: 1".into()]),
        (
            "d/web.yaml",
            vec![
                config("web", "git:web"),
                config("web", "git:lib"),
                config("api", "git:web"),
                reading,
                tool,
                follows,
                optional,
                keyed,
            ],
        ),
        (
            "d/service.yaml",
            vec![SERVICE.into(), SERVICE.replace("app: web", "app: api"), format!("{SERVICE}---\n{map}")],
        ),
        ("d/all.yaml", vec![leader.clone(), leader.replace("Custom, customParams: {command: [a]}", "Recreate")]),
        (
            "d/east.yaml",
            vec![
                controller("east", "all"),
                controller("east", "web"),
                controller("east", "none"),
                AUTOSCALER.replace("name: web", "name: all"),
            ],
        ),
        (
            "d/west.yaml",
            vec![
                controller("west", "all"),
                controller("west", "all").replace("region: west", "region: east"),
                controller("east", "all"),
                controller("west", "all").replace("git:web", "git:lib"),
            ],
        ),
        ("d/hpa.yaml", vec![AUTOSCALER.into(), AUTOSCALER.replace("name: web}\n  min", "name: api}\n  min")]),
        ("d/app.yaml", vec![TEMPLATE.into(), TEMPLATE.replace("white", "black")]),
        ("d/task.yaml", vec![task.into(), task.replace("a]", "b]")]),
        ("p/web.yaml", vec![config("web", "git:."), config("web", "git:web").replace("replicas", "replica")]),
        ("p/map.yaml", vec![map.into(), format!("{map}data: {{a: b}}\n"), format!("{map}---\n{map}")]),
        ("p/Chart.yaml", vec!["name: x".into()]),
        ("p/templates/x.yaml", vec![map.into()]),
        ("web/main.py", vec!["1".into(), "2".into()]),
        ("web/bin/launch", vec!["1".into(), "plain".into()]),
        ("web/bin/tool", vec!["1".into(), "plain".into()]),
        ("web/bin/build", vec!["1".into(), "plain".into()]),
        ("lib/x/main.py", vec!["1".into(), "2".into()]),
        ("README.md", vec!["1".into(), "2".into()]),
    ]
}

#[test]
fn histories_are_drawn_from_files_that_go_together() {
    let possibilities = possibilities();
    let first = |path: &str| possibilities.iter().find(|(it, _)| *it == path).map(|(_, texts)| texts[0].clone());
    let mut tree = shop();
    for path in ["d/all.yaml", "d/east.yaml", "d/west.yaml", "d/web.yaml"] {
        tree.set(path, first(path).as_deref());
    }
    tree.set("deploy/web.yaml", None);
    let snapshot = tree.read();
    assert_eq!(messages(&snapshot), [] as [&str; 0]);
    let project = snapshot.project().project.clone().expect("nothing is wrong");
    let led = project.stages[0].objects.iter().filter(|object| object.is_led()).count();
    assert_eq!(led, 2, "both controllers are deployed by what leads them");
}

fn history() -> impl Strategy<Value = Vec<Vec<(usize, Option<usize>)>>> {
    let change = (0..possibilities().len(), proptest::option::weighted(0.8, 0..8usize));
    proptest::collection::vec(proptest::collection::vec(change, 1..6), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_update_gives_exactly_what_reading_would(history in history()) {
        let possibilities = possibilities();
        let mut tree = shop();
        let mut snapshot = tree.read();
        for commit in history {
            let before = tree.clone();
            for (path, text) in commit {
                let (path, texts) = &possibilities[path];
                tree.set(path, text.map(|text| texts[text % texts.len()].as_str()));
            }
            snapshot = snapshot.update(&tree.changed_since(&before), &tree, &options()).expect("readable");
            let read = tree.read();
            prop_assert_eq!(snapshot.project(), read.project());
            prop_assert_eq!(messages(&snapshot), messages(&read));
            prop_assert_eq!(&snapshot.0.folders, &read.0.folders);
        }
    }

    #[test]
    fn no_file_panics(text in "(apiVersion: (v1|apps.openshift.io/v1|launchway.dev/v1)\nkind: (Service|DeploymentConfig|Task|List|Secret)\n)?[a-z:{}\\[\\], \n\"0-9-]{0,60}") {
        let _snapshot = Tree::of(&[("a.yaml", &text), ("launchway.yaml", &text), ("shipyard.yaml", &text)]).read();
    }
}
