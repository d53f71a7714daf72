use super::*;
use crate::forge::address::RepositoryAddress;
use crate::secret::Secret;

const WHOLE: &str = r#"
listen: 127.0.0.1:9000
state: state
publicUrl: https://deploy.example/
repositories:
  - name: shop
    url: https://git.example/acme/shop.git
    branch: main
    poll: 1m30s
    schedule: {cron: "0 3 * * *", timeZone: Europe/Berlin}
    allow: {users: [web], hostPaths: [/srv/data], hostImage: true}
    insecure: false
    credentials: {tokenFile: secrets/token, sshKeyFile: /keys/id, knownHostsFile: hosts, caFile: ca.pem}
    history: rewrite-allowed
    limits: {manifest: 1MiB, launchable: 3GiB, entries: 10, depth: 5, fetch: 1GiB, build: {time: 5m, disk: 1GiB}}
    forge: {kind: forgejo, url: "https://git.example/"}
    notes: true
    deployments: false
    previews: false
    commands: true
    approvals: {allowedSignersFile: signers}
    prometheus: [{url: 'https://prometheus.example/', tokenFile: prometheus-token}, {url: 'http://10.0.0.1:9090', insecure: true}]
    webhook: {secretFiles: [hook], secrets: ["hunter2"]}
  - {name: plain, url: /srv/git/plain.git, poll: 0s, forge: {kind: none}}
sequences: {taskStartTimeout: 1m, taskTimeout: 2h}
retention: {age: 48h, most: 7, output: 1h}
logs: {containerLogMaxSize: 1MiB, containerLogMaxFiles: 2, journald: true}
runtimes: {local: {}}
access: {tokens: [{name: ci, role: read, tokenFile: ci-token}, {name: ops, role: operate, tokenFile: ops-token}], socketGroup: deployers}
sinks:
  - name: ci
    url: https://ci.example/hook
    secretFile: ci-secret
    subscriptions:
      - {types: ["*.finished"], projects: [shop], stages: [dev], services: [web], matchExpressions: [{key: result, operator: Exists}]}
  - {name: here, url: "http://[::1]:9000/all"}
"#;

fn parse(text: &str) -> Result<Settings, Vec<Problem>> {
    Settings::parse("launchway.yaml", text.as_bytes(), Path::new("/etc/launchway"))
}

fn problems(text: &str) -> Vec<String> {
    parse(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_configuration_is_read() {
    let settings = parse(WHOLE).unwrap();
    assert_eq!(settings.listen, "127.0.0.1:9000".parse().unwrap());
    assert_eq!(settings.state, Some("/etc/launchway/state".into()));
    assert_eq!(settings.public_url.as_deref(), Some("https://deploy.example"));
    assert_eq!(settings.sequences.task_start_timeout, Duration::from_secs(60));
    assert_eq!((settings.logs, settings.journald), (LogLimits { max_size: 1 << 20, max_files: 2 }, true));
    let retention = settings.retention;
    assert_eq!((retention.age.as_secs(), retention.most, retention.output.as_secs()), (48 * 3600, 7, 3600));
    let tokens: Vec<_> = settings.tokens.iter().map(|token| (token.name.as_str(), token.role)).collect();
    assert_eq!(tokens, [("ci", Role::Read), ("ops", Role::Operate)]);
    assert_eq!(settings.socket_group.as_deref(), Some("deployers"));
    assert_eq!(settings.tokens[0].token, SecretSource::File("/etc/launchway/ci-token".into()));

    let [ci, here] = &settings.sinks[..] else { unreachable!("there are two") };
    assert_eq!((ci.name.as_str(), ci.url.as_str()), ("ci", "https://ci.example/hook"));
    assert_eq!(ci.secret, Some(SecretSource::File("/etc/launchway/ci-secret".into())));
    let asked = &ci.subscriptions[0];
    assert_eq!((&asked.types[..], asked.projects.len(), asked.stages.len()), (&["*.finished".to_owned()][..], 1, 1));
    assert_eq!((asked.services.len(), asked.selector.requirements().len()), (1, 1));
    assert!(here.subscriptions.is_empty() && here.secret.is_none());

    let shop = &settings.repositories[0];
    assert_eq!((shop.name.as_str(), shop.branch.as_deref()), ("shop", Some("main")));
    assert_eq!(shop.poll, Duration::from_secs(90));
    let opened: Vec<_> = shop.prometheus.iter().map(|it| (it.url.as_str(), it.token.is_some())).collect();
    assert_eq!(opened, [("https://prometheus.example", true), ("http://10.0.0.1:9090", false)]);
    assert!(shop.allowed_signers.as_ref().is_some_and(|path| path.ends_with("signers")));
    assert!(shop.schedule.is_some() && shop.notes && !shop.previews && shop.commands && !shop.insecure);
    assert_eq!(shop.history, History::RewriteAllowed);
    let build = BuildLimits { time: Duration::from_secs(300), disk: 1 << 30, ..BuildLimits::default() };
    let limits = Limits { manifest: 1 << 20, launchable: 3 << 30, entries: 10, depth: 5, fetch: 1 << 30, build };
    assert_eq!(shop.limits, limits);
    assert_eq!(shop.allow.host_paths, [PathBuf::from("/srv/data")]);
    assert_eq!(shop.credentials.token, Some("/etc/launchway/secrets/token".into()));
    assert_eq!(shop.credentials.ssh_key, Some("/keys/id".into()));
    let forge = shop.forge.clone().unwrap();
    assert_eq!((forge.kind, forge.url.as_deref()), (ForgeKind::Gitea, Some("https://git.example")));
    let secrets = [SecretSource::File("/etc/launchway/hook".into()), SecretSource::Value(Secret::new("hunter2"))];
    assert_eq!(shop.webhook, secrets);
    assert!(!format!("{settings:?}").contains("hunter2"));
    let hidden = settings.secret_files();
    for path in ["/etc/launchway/secrets/token", "/keys/id", "/etc/launchway/hook"] {
        assert!(hidden.contains(&path.into()), "{path}: {hidden:?}");
    }
}

#[test]
fn the_example_in_deploy_is_valid_also_with_every_comment_taken_up() {
    let example = include_str!("../../deploy/launchway.yaml");
    assert_eq!(parse(example).unwrap().repositories[0].poll, DEFAULT_POLL);
    // A setting that is commented out has its key right behind the mark.
    let take_up = |line: &str| {
        let is_setting = line.trim_start().strip_prefix("# ").is_some_and(|rest| {
            rest.split_once(": ").is_some_and(|(key, _)| key.chars().all(|letter| letter.is_ascii_alphabetic()))
        });
        if is_setting { line.replacen("# ", "", 1) } else { line.to_owned() }
    };
    let whole = parse(&example.lines().map(take_up).collect::<Vec<_>>().join("\n")).unwrap();
    assert!(whole.public_url.is_some() && whole.repositories[0].notes && whole.tokens.len() == 1);
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let settings = parse("repositories: [{name: a, url: /a}]").unwrap();
    assert_eq!((settings.listen, &settings.state, &settings.public_url), (DEFAULT_LISTEN, &None, &None));
    assert_eq!(settings.sequences, SequenceSettings::default());
    let repository = &settings.repositories[0];
    assert_eq!(repository.poll, DEFAULT_POLL);
    assert_eq!(repository.limits, Limits::default());
    assert_eq!(repository.allow, Allowances::default());
    assert_eq!(repository.history, History::Linear);
    assert!(repository.schedule.is_none() && repository.forge.is_none() && repository.webhook.is_empty());
    assert!(repository.previews && !repository.commands && !repository.deployments);
}

#[test]
fn polling_can_be_off() {
    assert_eq!(parse(WHOLE).unwrap().repositories[1].poll, Duration::ZERO);
}

#[test]
fn all_problems_are_named_at_once_with_their_places() {
    let text = r#"listen: everywhere
repositorys: []
repositories:
  - name: shop
    url: https://ada:hunter2@git.example/shop.git
    poll: 30
    brnach: main
  - name: shop
    url: shop.git
    limits: {manifest: huge, entries: 0}
    forge: {kind: sourcehut}
access: {tokens: [{name: ../x, role: admin}]}
"#;
    let expected = [
        "launchway.yaml:1:9: error: `everywhere` is no address to listen on \
         (an address and a port, such as `127.0.0.1:8787` or `[::1]:8787`)",
        "launchway.yaml:2:1: error: unknown key `repositorys` (did you mean `repositories`?)",
        "launchway.yaml:5:10: error: an address holds no password: it would be shown in tables and logs \
         (put it in a file and name that in `credentials`)",
        "launchway.yaml:6:11: error: 30 is not a duration (such as `10s`, `5m` or `1h30m`)",
        "launchway.yaml:7:5: error: unknown key `brnach` (did you mean `branch`?)",
        "launchway.yaml:8:11: error: the name `shop` is taken (names are unique)",
        "launchway.yaml:9:10: error: `shop.git` is no repository's address \
         (an absolute path, `https://…`, `ssh://…`, `file://…` or `user@host:path`)",
        "launchway.yaml:10:24: error: \"huge\" is not a size (such as `512KiB`, `4MiB` or `2GiB`)",
        "launchway.yaml:10:39: error: this is a number, and should be a whole number above 0",
        "launchway.yaml:11:19: error: `sourcehut` is not known (one of gitea, forgejo, gogs, github, gitlab, bitbucket, \
         bitbucket-data-center, azure, none)",
        "launchway.yaml:12:19: error: `tokenFile` is missing",
        "launchway.yaml:12:26: error: `../x` is no name \
         (up to 63 letters, digits, `-`, `_` and `.`, beginning with a letter or digit)",
        "launchway.yaml:12:38: error: `admin` is not known (one of read, operate)",
    ];
    assert_eq!(problems(text), expected);
}

#[test]
fn an_app_is_read_and_its_key_is_looked_at_as_any_other_secret() {
    let text = "repositories: [{name: a, url: 'https://github.com/a/b', deployments: true, forge: {kind: github, \
                app: {id: 1234, keyFile: app.pem}}}]";
    let settings = parse(text).unwrap();
    let app = settings.repositories[0].app().unwrap();
    assert_eq!((app.id, app.key_file.as_path()), (1234, Path::new("/etc/launchway/app.pem")));
    assert!(settings.secret_files().contains(&app.key_file), "pods do not see it");

    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let (config, key) = (folder.path().join("launchway.yaml"), folder.path().join("app.pem"));
    std::fs::write(&config, text).unwrap();
    let told = || Settings::load(&config).map_err(|found| found.iter().map(ToString::to_string).collect::<String>());
    let problem = told().unwrap_err();
    assert!(problem.contains("launchway.yaml:1:") && problem.contains("cannot read `"), "{problem}");
    std::fs::write(&key, "a key").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(told().unwrap_err().contains("others can read `"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(told().is_ok());
}

/// What people copy from the page of their host works, and leads to that host.
#[test]
fn the_pages_of_the_hosts_show_what_works() {
    for (page, kind) in [
        ("github", ForgeKind::Github),
        ("gitlab", ForgeKind::Gitlab),
        ("gitea", ForgeKind::Gitea),
        ("bitbucket", ForgeKind::Bitbucket),
        ("azure-devops", ForgeKind::Azure),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/hosts/{page}.md"));
        let text = std::fs::read_to_string(path).unwrap();
        let shown = text.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let settings = parse(shown).unwrap();
        let repository = &settings.repositories[0];
        assert_eq!(repository.forge.as_ref().map(|forge| forge.kind), Some(kind), "{page}");
        RepositoryAddress::on(kind, &repository.url, None).unwrap();
        let guessed = ForgeKind::guess(&repository.url);
        assert!(guessed == kind || page == "gitea", "{page} is not known by its name");
    }
}

#[test]
fn one_value_at_a_time() {
    let repository = |rest: &str| format!("repositories: [{{name: a, url: /a, {rest}}}]");
    let cases = [
        ("store: postgres://db/launchway".to_owned(), "not supported yet"),
        ("runtimes: {kubernetes: {}}".to_owned(), "a cluster is not supported yet"),
        ("runtimes: {docker: {}}".to_owned(), "unknown key `docker`"),
        ("publicUrl: deploy.example".to_owned(), "is no http address"),
        ("publicUrl: https://user@deploy.example".to_owned(), "is no http address"),
        ("access: {socketGroup: 998}".to_owned(), "put text in quotes"),
        ("access: {socketGroups: [ops]}".to_owned(), "did you mean `socketGroup`"),
        ("repositories: {}".to_owned(), "should be a list"),
        (repository("commands: true"), "comments are read from GitHub, GitLab, Gitea, Forgejo and Bitbucket alone"),
        (repository("commands: true, forge: {kind: azure}"), "comments are read from"),
        (repository("commands: true, forge: {kind: gitea}"), "comments come by webhook"),
        (repository("deployments: true"), "deployments are shown on GitHub and GitLab alone"),
        (repository("deployments: true, forge: {kind: gitea}"), "deployments are shown on GitHub and GitLab alone"),
        (repository("deployments: true, forge: {kind: github}"), "deployments on a host need a token"),
        (repository("code: [{url: 'https://github.com/a/b', credentials: {tokenFile: t}}]"), "`name` is missing"),
        (repository("code: [{name: app, url: 'https://github.com/a/b'}]"), "statuses on a host need a token"),
        (repository("code: [{name: app, url: /srv/app.git}]"), "no host is known there that takes statuses"),
        (repository("code: [{name: app, url: 'https://github.com/a/b', branch: main}]"), "unknown key `branch`"),
        (repository("forge: {kind: github, app: {}}"), "`id` is missing"),
        (repository("forge: {kind: github, app: {id: 1}}"), "`keyFile` is missing"),
        (
            repository("forge: {kind: github, app: {id: one, keyFile: k}}"),
            "1:67: error: this is text, and should be a whole number",
        ),
        (repository("forge: {kind: github, app: {id: 0, keyFile: k}}"), "should be a whole number above 0"),
        (repository("forge: {kind: github, app: {id: 1, keyFile: k, token: t}}"), "unknown key `token`"),
        (repository("forge: {kind: github, app: 1}"), "should be a mapping"),
        (repository("forge: {kind: gitlab, app: {id: 1, keyFile: k}}"), "1:62: error: only GitHub has Apps"),
        (
            repository("forge: {kind: github, app: {id: 1, keyFile: k}}, credentials: {tokenFile: t}"),
            "a token and a GitHub App exclude each other",
        ),
        (repository("prometheus: [{}]"), "`url` is missing"),
        (repository("prometheus: [{url: 'http://10.0.0.1'}]"), "what opens it would cross the network in the clear"),
        (repository("prometheus: [{url: 'https://a', usernameFile: u}]"), "a user name and a password belong together"),
        (
            repository("prometheus: [{url: 'https://a', tokenFile: t, usernameFile: u, passwordFile: p}]"),
            "a token and a password exclude each other",
        ),
        (repository("approvals: {}"), "`allowedSignersFile` is missing"),
        (repository("approvals: {signers: a}"), "unknown key `signers`"),
        ("repositories: [{url: /a}]".to_owned(), "`name` is missing"),
        ("repositories: [{name: a}]".to_owned(), "`url` is missing"),
        ("repositories: [text]".to_owned(), "should be a mapping"),
        ("sequences: {taskTimeout: -5s}".to_owned(), "is not a duration"),
        ("logs: {containerLogMaxFiles: 0}".to_owned(), "should be a whole number above 0"),
        ("logs: {containerLogMaxSize: much}".to_owned(), "is not a size"),
        ("retention: {most: 0}".to_owned(), "should be a whole number above 0"),
        ("retention: {age: 30d}".to_owned(), "is not a duration"),
        ("listen: 8787".to_owned(), "put text in quotes"),
        (repository("poll: 5 apples"), "is not a duration"),
        (repository("schedule: {cron: '61 * * * *'}"), "is no cron expression"),
        (repository("schedule: {cron: '@daily', timeZone: Mars}"), "`Mars` is not known"),
        (repository("schedule: {timeZone: UTC}"), "`cron` is missing"),
        (repository("branch: refs/heads/main"), "without `refs/heads/`"),
        (repository("branch: a..b"), "is no branch"),
        (repository("allow: {hostPaths: [data]}"), "is no absolute path"),
        (repository("allow: {hostPaths: [/srv/../etc]}"), "is no absolute path"),
        (repository("credentials: {tokenFile: a, passwordFile: b}"), "exclude each other"),
        (repository("credentials: {token: hunter2}"), "did you mean `tokenFile`"),
        (repository("history: rewritten"), "one of linear, rewrite-allowed"),
        (repository("limits: {depth: 1.5}"), "should be a whole number"),
        (repository("limits: {manifest: 99999999999TiB}"), "is not a size"),
        (repository("registries: [{host: 'https://quay.io/'}]"), "as images name it"),
        (repository("registries: [{usernameFile: /dev/null, host: quay.io}]"), "belong together"),
        (repository("webhook: {secrets: [12345]}"), "put text in quotes"),
        (repository("webhook: {secrets: ['']}"), "not empty"),
        (repository("webhook: {secrets: [x]}"), "not a single character"),
        (repository("insecure: maybe"), "should be true or false"),
        ("a: 1\na: 2".to_owned(), "a"),
        ("---\n---\n".to_owned(), "one YAML document"),
        (String::new(), "one YAML document"),
        ("- list".to_owned(), "should be a mapping"),
    ];
    for (text, expected) in cases {
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{text}: {found:?}");
        assert!(!found.concat().contains("12345"), "a secret is shown: {found:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_says_so() {
    let found = Settings::load(Path::new("/nowhere/launchway.yaml")).unwrap_err();
    assert!(found[0].to_string().contains("cannot read the configuration"), "{found:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launchway.yaml");
    std::fs::write(&path, " ".repeat(2 << 20)).unwrap();
    assert!(Settings::load(&path).unwrap_err()[0].to_string().contains("at most 1 MiB"));
    std::fs::write(&path, "state: state\nrepositories: []").unwrap();
    assert_eq!(Settings::load(&path).unwrap().state, Some(folder.path().join("state")));
}

#[test]
fn a_configuration_is_itself_a_file_that_may_hold_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launchway.yaml");
    std::fs::write(&path, "repositories: [{name: a, url: /a, webhook: {secrets: [hunter2hunter2hunter2]}}]").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    assert_eq!(Settings::load(&path).unwrap().secret_files(), [path]);
}

#[test]
fn files_that_others_can_read_or_that_hold_no_secret_are_refused_all_at_once() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    for (name, content, mode) in [
        ("good", "hunter2", 0o600),
        ("open", "hunter2", 0o604),
        ("empty", " \n", 0o600),
        ("x", "x\n", 0o400),
        ("key", "a key", 0o644),
        ("hosts", "a host", 0o644),
        ("ca", "a certificate", 0o646),
        ("own-group", "hunter2", 0o640),
    ] {
        write(name, content, mode);
    }
    let text = "access: {tokens: [{name: ci, role: read, tokenFile: open}]}
repositories:
  - name: shop
    url: /srv/shop.git
    credentials: {tokenFile: empty, sshKeyFile: key, knownHostsFile: hosts, caFile: ca}
    webhook: {secretFiles: [x, good, none, own-group]}
    brnach: main
";
    let path = write("launchway.yaml", text, 0o644);
    let found: Vec<String> = Settings::load(&path).unwrap_err().iter().map(ToString::to_string).collect();
    let places: Vec<&str> =
        found.iter().map(|problem| problem.split(": error: ").next().unwrap().rsplit('/').next().unwrap()).collect();
    let at = |place: &str| format!("launchway.yaml:{place}");
    assert_eq!(places, ["1:53", "5:30", "5:49", "5:85", "6:29", "6:38", "7:5"].map(at), "{found:#?}");
    for (number, expected) in [
        (0, "others can read"),
        (1, "is empty"),
        (2, "others can read"),
        (3, "others can change"),
        (4, "single character"),
    ] {
        assert!(found[number].contains(expected), "{}", found[number]);
    }
    assert!(!found.concat().contains("hunter2"));
    if rustix::process::geteuid().is_root() {
        chown(folder.path().join("own-group"), None, Some(65534)).unwrap();
        assert_eq!(Settings::load(&path).unwrap_err().len(), found.len() + 1);
    }
}

#[test]
fn a_named_file_that_is_none_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    let path = folder.path().join("launchway.yaml");
    for field in ["tokenFile", "sshKeyFile", "caFile"] {
        let credentials = format!("    credentials: {{{field}: pipe}}");
        let text = format!("repositories:\n  - name: shop\n    url: https://x.example/shop.git\n{credentials}\n");
        std::fs::write(&path, text).unwrap();
        let found: Vec<String> = Settings::load(&path).unwrap_err().iter().map(ToString::to_string).collect();
        let column = credentials.find("pipe").unwrap() + 1;
        let told = format!("{}:4:{column}: error: `{}` is no regular file", path.display(), pipe.display());
        assert!(found.contains(&told), "{field}: {found:?}");
    }
}

#[test]
fn a_configuration_with_a_secret_in_it_is_refused_if_others_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("launchway.yaml");
    let problems = |webhook: &str, mode: u32| {
        std::fs::write(&path, format!("repositories:\n  - name: shop\n    url: /srv/shop.git\n{webhook}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let found = Settings::load(&path).err().unwrap_or_default();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let inline = "    webhook: {secrets: [hunter2, hunter3]}\n";
    let found = problems(inline, 0o644);
    assert_eq!(found.len(), 1, "{found:?}");
    let told = format!("{path}:4:25: error: others can read `{path}`", path = path.display());
    assert!(found[0].starts_with(&told) && found[0].contains("chmod 600"), "{found:?}");
    assert!(!found[0].contains("hunter"));
    assert_eq!((problems(inline, 0o600), problems(inline, 0o640)), (vec![], vec![]));
    assert!(problems("", 0o644).is_empty(), "there is nothing to hide");
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[a-zA-Z:\\[\\]{}, \n-]{0,200}") {
        drop(parse(&text));
    }
}

#[test]
fn a_sink_says_where_it_is_and_what_it_is_told() {
    let sink = |more: &str| format!("sinks: [{{name: ci, {more}}}]");
    let asks = |more: &str| sink(&format!("url: 'https://a.example', subscriptions: [{{matchExpressions: [{more}]}}]"));
    for (text, expected) in [
        (sink("secretFile: a"), "`url` is missing"),
        (sink("url: 'http://ci.example'"), "events would cross the network in the clear"),
        (sink("url: 'http://127.0.0.1.ci.example'"), "events would cross the network in the clear"),
        (sink("url: 'https://user:hunter2@ci.example'"), "is no http address"),
        (sink("url: 'https://ci.example/hook?token=hunter2'"), "`?` and `#` are not taken"),
        (sink("url: 'https://a.example', secrets: [a]"), "unknown key `secrets`"),
        (asks("{key: result, operator: Is}"), "`Is` is not known"),
        (asks("{key: result, operator: In}"), "`In` and `NotIn` need `values`"),
        (asks("{key: result, operator: Exists, values: [a]}"), "`Exists` takes no `values`"),
        (asks("{operator: Exists}"), "`key` is missing"),
    ] {
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.contains(expected)), "{text}: {found:?}");
        assert!(!found.iter().any(|problem| problem.contains("hunter2")), "{text}: {found:?}");
    }
    assert!(parse(&sink("url: 'http://ci.example', insecure: true")).is_ok());
    let both = "sinks: [{name: ci, url: 'https://a.example'}, {name: ci, url: 'https://b.example'}]";
    assert!(problems(both)[0].contains("the name `ci` is taken"));
}
