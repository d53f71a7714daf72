//! What each key means and may be.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::fields::Field;
use super::files::Holds;
use super::hosts::{code, credentials, forge, refuse_both, refuse_token_beside_app};
use super::sinks::sinks;
use super::{
    AccessToken, Allowances, DEFAULT_LISTEN, DEFAULT_POLL, ForgeKind, History, Limits, RepositorySettings,
    RetentionSettings, Role, SequenceSettings, Settings,
};
use crate::indicators::prometheus::PrometheusSettings;
use crate::model::host::is_loopback;
use crate::model::ids::RepositoryName;
use crate::registry::http::RegistrySettings;
use crate::runtime::local::LogLimits;
use crate::runtime::local::launchable::BuildLimits;
use crate::secret::{Secret, SecretSource};
use crate::trigger::schedule::Schedule;

/// Names are parts of paths and of file names.
const MAX_NAME: usize = 63;

/// The most files in which a container's output is kept: all of them are searched for whenever it is read.
const MOST_LOG_FILES: u32 = 100;

/// The settings; only to be used if no problem was found.
pub(super) fn settings(root: &Field<'_>, folder: &Path) -> Settings {
    root.known(&[
        "listen",
        "state",
        "publicUrl",
        "repositories",
        "sequences",
        "retention",
        "logs",
        "runtimes",
        "access",
        "sinks",
        "store",
    ]);
    later(&root.field("store"), "another store than the one in the state folder");
    runtimes(&root.field("runtimes"));
    let repositories = root.field("repositories").items();
    let repositories: Vec<_> = repositories.iter().map(|field| repository(field, folder)).collect();
    let access = root.field("access");
    access.known(&["tokens", "socketGroup"]);
    Settings {
        file: None,
        listen: listen(&root.field("listen")),
        state: root.field("state").path(folder),
        public_url: http_address(&root.field("publicUrl")),
        repositories: unique(&root.field("repositories"), repositories, |repository| repository.name.as_str()),
        sequences: sequences(&root.field("sequences")),
        retention: retention(&root.field("retention")),
        logs: logs(&root.field("logs")),
        journald: root.field("logs").field("journald").flag().unwrap_or(false),
        tokens: tokens(&access.field("tokens"), folder),
        socket_group: access.field("socketGroup").text().map(str::to_owned),
        sinks: sinks(&root.field("sinks"), folder),
    }
}

/// Something that a later version takes.
fn later(field: &Field<'_>, what: &str) {
    if field.is_given() {
        field.error("unsupported", format!("{what} is not supported yet"), "leave it out");
    }
}

fn runtimes(field: &Field<'_>) {
    field.known(&["local", "kubernetes"]);
    field.field("local").known(&[]);
    later(&field.field("kubernetes"), "a cluster");
}

fn listen(field: &Field<'_>) -> SocketAddr {
    let Some(text) = field.text() else { return DEFAULT_LISTEN };
    text.parse().unwrap_or_else(|_| {
        let hint = "an address and a port, such as `127.0.0.1:8787` or `[::1]:8787`";
        field.error("invalid", format!("`{text}` is no address to listen on"), hint);
        DEFAULT_LISTEN
    })
}

pub(super) fn http_address(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let hint = "such as `https://deploy.example`";
    if text.contains(['@', '?', '#']) {
        // What stands there may be a secret, which is not repeated.
        field.error("invalid", "this is no http address: `@`, `?` and `#` are not taken", hint);
    } else if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(' ')) {
        field.error("invalid", format!("`{text}` is no http address"), hint);
    }
    Some(text.trim_end_matches('/').to_owned())
}

fn sequences(field: &Field<'_>) -> SequenceSettings {
    field.known(&["taskStartTimeout", "taskTimeout"]);
    let default = SequenceSettings::default();
    SequenceSettings {
        task_start_timeout: field.field("taskStartTimeout").duration().unwrap_or(default.task_start_timeout),
        task_timeout: field.field("taskTimeout").duration().unwrap_or(default.task_timeout),
    }
}

fn retention(field: &Field<'_>) -> RetentionSettings {
    field.known(&["age", "most", "output"]);
    let default = RetentionSettings::default();
    RetentionSettings {
        age: field.field("age").duration().unwrap_or(default.age),
        most: field.field("most").small_count().unwrap_or(default.most),
        output: field.field("output").duration().unwrap_or(default.output),
    }
}

/// The names of limits are the kubelet's.
fn logs(field: &Field<'_>) -> LogLimits {
    field.known(&["containerLogMaxSize", "containerLogMaxFiles", "journald"]);
    let default = LogLimits::default();
    LogLimits {
        max_size: field.field("containerLogMaxSize").size().unwrap_or(default.max_size),
        max_files: field.field("containerLogMaxFiles").small_count().unwrap_or(default.max_files).min(MOST_LOG_FILES),
    }
}

fn tokens(field: &Field<'_>, folder: &Path) -> Vec<AccessToken> {
    let tokens = field.items().into_iter().map(|field| {
        field.known(&["name", "role", "tokenFile"]);
        let (role, file) = (field.field("role"), field.field("tokenFile"));
        role.required();
        file.required();
        AccessToken {
            name: name(&field.field("name")),
            role: role.word(&[("read", Role::Read), ("operate", Role::Operate)]).unwrap_or(Role::Read),
            token: SecretSource::File(file.file(folder, Holds::Secret).unwrap_or_default()),
        }
    });
    unique(field, tokens.collect(), |token| &token.name)
}

/// A name that may stand in a path: letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
pub(super) fn name(field: &Field<'_>) -> String {
    field.required();
    let Some(text) = field.text() else { return String::new() };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins || text.len() > MAX_NAME || !text.bytes().all(allowed) {
        let hint = "up to 63 letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
        field.error("invalid", format!("`{text}` is no name"), hint);
    }
    text.to_owned()
}

pub(super) fn unique<T>(field: &Field<'_>, values: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<T> {
    for (index, item) in field.items().iter().enumerate() {
        let own = values.get(index).map_or("", &name);
        if !own.is_empty() && values[..index].iter().any(|earlier| name(earlier) == own) {
            item.field("name").error("duplicate", format!("the name `{own}` is taken"), "names are unique");
        }
    }
    values
}

const REPOSITORY: [&str; 20] = [
    "name",
    "url",
    "branch",
    "poll",
    "schedule",
    "allow",
    "insecure",
    "credentials",
    "history",
    "limits",
    "forge",
    "code",
    "notes",
    "deployments",
    "previews",
    "commands",
    "approvals",
    "webhook",
    "prometheus",
    "registries",
];

fn repository(field: &Field<'_>, folder: &Path) -> RepositorySettings {
    field.known(&REPOSITORY);
    let get = |key| field.field(key);
    let settings = RepositorySettings {
        name: RepositoryName::new(name(&get("name"))),
        url: address(&get("url")),
        branch: branch(&get("branch")),
        poll: get("poll").duration().unwrap_or(DEFAULT_POLL),
        schedule: schedule(&get("schedule")),
        allow: allowances(&get("allow")),
        insecure: get("insecure").flag().unwrap_or(false),
        credentials: credentials(&get("credentials"), folder),
        history: get("history")
            .word(&[("linear", History::Linear), ("rewrite-allowed", History::RewriteAllowed)])
            .unwrap_or_default(),
        limits: limits(&get("limits")),
        forge: forge(&get("forge"), folder),
        code: code(&get("code"), folder),
        notes: get("notes").flag().unwrap_or(false),
        deployments: get("deployments").flag().unwrap_or(false),
        previews: get("previews").flag().unwrap_or(true),
        commands: get("commands").flag().unwrap_or(false),
        allowed_signers: approvals(&get("approvals"), folder),
        webhook: webhook(&get("webhook"), folder),
        prometheus: get("prometheus").items().iter().map(|field| prometheus(field, folder)).collect(),
        registries: get("registries").items().iter().map(|field| registry(field, folder)).collect(),
    };
    refuse_token_beside_app(&get("credentials"), &settings);
    refuse_vain_commands(&get("commands"), &settings);
    refuse_vain_deployments(&get("deployments"), &settings);
    settings
}

/// By whom commits may approve.
fn approvals(field: &Field<'_>, folder: &Path) -> Option<PathBuf> {
    field.known(&["allowedSignersFile"]);
    let file = field.field("allowedSignersFile");
    if !field.is_given() || !file.required() {
        return None;
    }
    file.file(folder, Holds::Public)
}

/// Whoever wants deployments on the host hears where none would ever be shown.
fn refuse_vain_deployments(field: &Field<'_>, settings: &RepositorySettings) {
    if !settings.deployments {
        return;
    }
    if !matches!(settings.host(), ForgeKind::Github | ForgeKind::Gitlab) {
        let message = "deployments are shown on GitHub and GitLab alone";
        field.error("invalid", message, "name the host with `forge: {kind: …}`, or leave `deployments` out");
    } else if settings.credentials.token.is_none() && settings.app().is_none() {
        let message = "deployments on a host need a token";
        field.error("invalid", message, "give `credentials: {tokenFile: …}`");
    }
}

/// Whoever lets people command in comments hears where none would ever be heard of.
fn refuse_vain_commands(field: &Field<'_>, settings: &RepositorySettings) {
    if !settings.commands {
        return;
    }
    let is_read = matches!(
        settings.host(),
        ForgeKind::Gitea
            | ForgeKind::Github
            | ForgeKind::Gitlab
            | ForgeKind::Bitbucket
            | ForgeKind::BitbucketDataCenter
    );
    if !is_read {
        let message = "comments are read from GitHub, GitLab, Gitea, Forgejo and Bitbucket alone";
        field.error("invalid", message, "name the host with `forge: {kind: …}`, or leave `commands` out");
    } else if settings.webhook.is_empty() {
        let message = "comments come by webhook, and there is no secret for one";
        field.error("invalid", message, "give `webhook: {secretFiles: […]}`");
    }
}

/// Only what must not be in any address is refused here; the rest is up to the transports.
pub(super) fn address(field: &Field<'_>) -> String {
    field.required();
    let Some(text) = field.text() else { return String::new() };
    let authority = text.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    let has_password = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    if has_password {
        let message = "an address holds no password: it would be shown in tables and logs";
        field.error("invalid", message, "put it in a file and name that in `credentials`");
        return String::new();
    }
    let is_relative = !text.contains(':') && !text.starts_with('/');
    if text.trim().is_empty() || text.chars().any(char::is_control) || is_relative {
        let hint = "an absolute path, `https://…`, `ssh://…`, `file://…` or `user@host:path`";
        field.error("invalid", format!("`{}` is no repository's address", text.escape_debug()), hint);
    }
    text.to_owned()
}

fn branch(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let refused = |character: char| character.is_control() || " ~^:?*[\\".contains(character);
    let is_odd = text.is_empty() || text.starts_with(['-', '/']) || text.ends_with(['/', '.']) || text.contains("..");
    if is_odd || text.starts_with("refs/") || text.contains(refused) {
        let message = format!("`{}` is no branch", text.escape_debug());
        field.error("invalid", message, "its name without `refs/heads/`, such as `main`");
    }
    Some(text.to_owned())
}

fn schedule(field: &Field<'_>) -> Option<Schedule> {
    field.known(&["cron", "timeZone"]);
    let cron = field.field("cron");
    if !field.is_given() || !cron.required() {
        return None;
    }
    let zone = field.field("timeZone");
    let zone = if zone.is_given() { zone.text()? } else { "UTC" };
    Schedule::parse(cron.text()?, zone)
        .map_err(|failure| field.error("invalid", format!("{failure:#}"), failure.hint_text().unwrap_or_default()))
        .ok()
}

fn allowances(field: &Field<'_>) -> Allowances {
    field.known(&["users", "hostPaths", "hostImage"]);
    let users = field.field("users").items();
    let paths = field.field("hostPaths").items();
    Allowances {
        users: users.iter().filter_map(Field::text).map(str::to_owned).collect(),
        host_paths: paths.iter().filter_map(absolute).collect(),
        host_image: field.field("hostImage").flag().unwrap_or(false),
    }
}

fn absolute(field: &Field<'_>) -> Option<PathBuf> {
    let path = PathBuf::from(field.text()?);
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    if !path.is_absolute() || climbs {
        field.error(
            "invalid",
            format!("`{}` is no absolute path", path.display()),
            "such as `/srv/data`, without `..`",
        );
    }
    Some(path)
}

/// A user name and a password, which belong together.
fn user(field: &Field<'_>, folder: &Path) -> (Option<SecretSource>, Option<SecretSource>) {
    let file = |key, holds| field.field(key).file(folder, holds).map(SecretSource::File);
    let (username, password) = (file("usernameFile", Holds::Public), file("passwordFile", Holds::Secret));
    if username.is_some() != password.is_some() {
        field.error("conflict", "a user name and a password belong together", "give both files");
    }
    (username, password)
}

/// What opens a Prometheus.
fn prometheus(field: &Field<'_>, folder: &Path) -> PrometheusSettings {
    field.known(&["url", "tokenFile", "usernameFile", "passwordFile", "caFile", "insecure"]);
    let file = |key, holds| field.field(key).file(folder, holds);
    let token = file("tokenFile", Holds::Secret);
    let (username, password) = user(field, folder);
    refuse_both(field, token.is_some() && password.is_some());
    PrometheusSettings {
        url: private_address(&field.field("url"), field, "what opens it would cross the network in the clear"),
        token: token.map(SecretSource::File),
        username,
        password,
        ca_file: file("caFile", Holds::Public),
    }
}

/// An address by HTTP. Where everybody on the way could read what is sent to it, `insecure` says that this is meant.
pub(super) fn private_address(field: &Field<'_>, whole: &Field<'_>, otherwise: &str) -> String {
    field.required();
    let url = http_address(field).unwrap_or_default();
    let host = url.strip_prefix("http://").map(|rest| rest.split('/').next().unwrap_or_default());
    if host.is_some_and(|host| !is_loopback(host)) && !whole.field("insecure").flag().unwrap_or(false) {
        field.error("invalid", otherwise, "use https://, or set `insecure: true` beside it");
    }
    url
}

/// What opens a registry of images.
fn registry(field: &Field<'_>, folder: &Path) -> RegistrySettings {
    field.known(&["host", "usernameFile", "passwordFile", "caFile", "insecure"]);
    let file = |key, holds| field.field(key).file(folder, holds);
    let (username, password) = user(field, folder);
    let host = field.field("host").text().unwrap_or_default().to_owned();
    if host.is_empty() || host.contains('/') {
        field.field("host").error("invalid", "must be a host, as images name it", "such as `registry.example:5000`");
    }
    RegistrySettings {
        host,
        username,
        password,
        ca_file: file("caFile", Holds::Public),
        insecure: field.field("insecure").flag().unwrap_or(false),
    }
}

fn limits(field: &Field<'_>) -> Limits {
    field.known(&["manifest", "launchable", "entries", "depth", "fetch", "build"]);
    let default = Limits::default();
    Limits {
        manifest: field.field("manifest").size().unwrap_or(default.manifest),
        launchable: field.field("launchable").size().unwrap_or(default.launchable),
        entries: field.field("entries").count().unwrap_or(default.entries),
        depth: field.field("depth").count().unwrap_or(default.depth),
        fetch: field.field("fetch").size().unwrap_or(default.fetch),
        build: build_limits(&field.field("build")),
    }
}

fn build_limits(field: &Field<'_>) -> BuildLimits {
    field.known(&["time", "memory", "processes", "disk"]);
    let default = BuildLimits::default();
    BuildLimits {
        time: field.field("time").duration().unwrap_or(default.time),
        memory: field.field("memory").size().unwrap_or(default.memory),
        processes: field.field("processes").count().unwrap_or(default.processes),
        disk: field.field("disk").size().unwrap_or(default.disk),
    }
}

fn webhook(field: &Field<'_>, folder: &Path) -> Vec<SecretSource> {
    field.known(&["secretFiles", "secrets"]);
    let (files, secrets) = (field.field("secretFiles").items(), field.field("secrets").items());
    let files = files.iter().filter_map(|file| file.file(folder, Holds::Secret)).map(SecretSource::File);
    secrets.iter().take(1).for_each(Field::makes_private);
    let secrets = secrets.iter().filter_map(|secret| {
        let value = Secret::new(secret.text()?.trim());
        if value.is_guessed() {
            let message = "a secret is not empty, and not a single character";
            secret.error("invalid", message, "make one with `openssl rand -hex 32`");
        }
        Some(SecretSource::Value(value))
    });
    files.chain(secrets).collect()
}
