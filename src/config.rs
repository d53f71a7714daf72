//! The daemon's configuration: one YAML document, read strictly. From text to [`Settings`] it is pure; every problem
//! is found at once, with its place and what to do, those of the files that it names included.

mod fields;
mod files;
mod hosts;
mod parse;
mod sinks;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use self::fields::Field;
use self::files::NamedFile;
use crate::forge::address::ForgeKind;
use crate::forge::github::app::AppSettings;
use crate::indicators::prometheus::PrometheusSettings;
use crate::manifest::Problem;
use crate::manifest::yaml;
use crate::model::ids::RepositoryName;
use crate::model::object::Location;
use crate::model::run::TaskLimits;
use crate::registry::http::RegistrySettings;
use crate::runtime::local::LogLimits;
use crate::runtime::local::launchable::BuildLimits;
use crate::secret::SecretSource;
use crate::sinks::http::SinkSettings;
use crate::trigger::schedule::Schedule;

/// A larger file is a mistake.
const MAX_BYTES: u64 = 1 << 20;
/// Where the daemon listens unless told otherwise: on this machine only.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);
/// How often a repository is polled unless told otherwise.
pub const DEFAULT_POLL: Duration = Duration::from_secs(30);

/// What `launchway serve` is configured with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file that says so, if one does.
    pub file: Option<PathBuf>,
    /// Where the API, the page and webhooks are served.
    pub listen: SocketAddr,
    /// The state folder; `None`: the user's own.
    pub state: Option<PathBuf>,
    /// The address that links in statuses begin with, without a slash at the end.
    pub public_url: Option<String>,
    /// What is watched; names are unique.
    pub repositories: Vec<RepositorySettings>,
    /// How long tasks may take.
    pub sequences: SequenceSettings,
    /// How long what nothing needs any more is kept.
    pub retention: RetentionSettings,
    /// How much of containers' output is kept.
    pub logs: LogLimits,
    /// Whether it goes to the machine's journal too.
    pub journald: bool,
    /// Who may use the API; names are unique.
    pub tokens: Vec<AccessToken>,
    /// Whose members may use the socket for commands, beside the daemon's own user; a group by name or number.
    pub socket_group: Option<String>,
    /// Who is told what happens; names are unique.
    pub sinks: Vec<SinkSettings>,
}

/// A watched repository.
#[derive(Clone, Debug)]
pub struct RepositorySettings {
    /// Its name in paths, tables and metrics.
    pub name: RepositoryName,
    /// Where it is; without credentials.
    pub url: String,
    /// The branch; `None`: the one that the repository's `HEAD` names.
    pub branch: Option<String>,
    /// How often it is synced; zero: only when a trigger says so.
    pub poll: Duration,
    /// Fixed times at which it is synced too.
    pub schedule: Option<Schedule>,
    /// What it may use of this machine.
    pub allow: Allowances,
    /// Whether `git://` and `http://` to other machines are allowed.
    pub insecure: bool,
    /// What opens it.
    pub credentials: CredentialFiles,
    /// What a head may be that does not descend from the one before.
    pub history: History,
    /// What is refused as too large.
    pub limits: Limits,
    /// Where statuses are written; `None`: guessed from `url` where that is safe.
    pub forge: Option<ForgeSettings>,
    /// The repositories of the code that it deploys, whose commits get the statuses too; of these only the name, the address and what
    /// opens the host count.
    pub code: Vec<RepositorySettings>,
    /// Whether Git notes are written beside a forge's statuses.
    pub notes: bool,
    /// Whether its host's environments show what is deployed.
    pub deployments: bool,
    /// Whether its pull requests are told what merging them would do.
    pub previews: bool,
    /// Whether people who may write to it command in comments on its pull requests.
    pub commands: bool,
    /// Who may say in signed commits what becomes of what waits for approval: a file as Git's `gpg.ssh.allowedSignersFile`.
    pub allowed_signers: Option<PathBuf>,
    /// What signs its webhooks; all are valid at once, none means that it takes none.
    pub webhook: Vec<SecretSource>,
    /// What opens each Prometheus that judges its objectives; others are asked without credentials.
    pub prometheus: Vec<PrometheusSettings>,
    /// What opens the registries of its images; others are asked without credentials.
    pub registries: Vec<RegistrySettings>,
}

/// What a repository may use of the machine beyond the daemon's own user and folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Users that its pods may run as.
    pub users: Vec<String>,
    /// Folders that its pods may mount.
    pub host_paths: Vec<PathBuf>,
    /// Whether the image `host` may be used.
    pub host_image: bool,
}

/// Files that open a repository. They are read at each use, so that a changed one counts at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialFiles {
    /// An access token, for Git over HTTP and for the forge's API.
    pub token: Option<PathBuf>,
    /// A user name for HTTP.
    pub username: Option<PathBuf>,
    /// Its password.
    pub password: Option<PathBuf>,
    /// A private key for SSH.
    pub ssh_key: Option<PathBuf>,
    /// The host keys that are accepted.
    pub known_hosts: Option<PathBuf>,
    /// Certificate authorities that are trusted beside the machine's.
    pub ca: Option<PathBuf>,
}

/// What a head may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// A descendant of the one before.
    #[default]
    Linear,
    /// Anything.
    RewriteAllowed,
}

/// What of a repository is refused as too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file that declares objects.
    pub manifest: u64,
    /// Bytes of one launchable.
    pub launchable: u64,
    /// Entries of the tree.
    pub entries: u64,
    /// Folders inside folders.
    pub depth: u64,
    /// Bytes that the remote sends at once.
    pub fetch: u64,
    /// What `bin/build` may take while it runs.
    pub build: BuildLimits,
}

impl Default for Limits {
    fn default() -> Self {
        let build = BuildLimits::default();
        Self { manifest: 4 << 20, launchable: 2 << 30, entries: 1_000_000, depth: 128, fetch: 8 << 30, build }
    }
}

/// Git hosting with an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgeSettings {
    /// Which one.
    pub kind: ForgeKind,
    /// Its base address, without a slash at the end; `None`: guessed from the repository's.
    pub url: Option<String>,
    /// The GitHub App that opens it in place of a token.
    pub app: Option<AppSettings>,
}

/// How long tasks of sequences may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceSettings {
    /// Until the pod of a task is started.
    pub task_start_timeout: Duration,
    /// From then on to its end, unless the task says otherwise.
    pub task_timeout: Duration,
}

impl Default for SequenceSettings {
    fn default() -> Self {
        let TaskLimits { start, run } = TaskLimits::default();
        Self { task_start_timeout: start, task_timeout: run }
    }
}

/// How long what nothing needs any more is kept. Old versions of a deployment config are kept as its
/// `revisionHistoryLimit` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionSettings {
    /// Runs with their events, revisions with their plans, statuses, what passed.
    pub age: Duration,
    /// Of younger ones so many stay, the newest: runs of a service in a stage, revisions of a repository, and so on.
    pub most: u32,
    /// Ended pods of hooks and tasks, with their output.
    pub output: Duration,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        Self { age: days(30), most: 100, output: days(7) }
    }
}

/// Somebody who may use the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    /// What stands in the audit record.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// The token.
    pub token: SecretSource,
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// See.
    Read,
    /// Also act.
    Operate,
}

impl RepositorySettings {
    /// The host that is named, or told by its address.
    pub fn host(&self) -> ForgeKind {
        self.forge.as_ref().map_or_else(|| ForgeKind::guess(&self.url), |forge| forge.kind)
    }

    /// The GitHub App that opens its host, if one does.
    pub fn app(&self) -> Option<&AppSettings> {
        self.forge.as_ref()?.app.as_ref()
    }

    /// A repository with every default.
    pub fn new(name: RepositoryName, url: impl Into<String>) -> Self {
        Self {
            name,
            url: url.into(),
            branch: None,
            poll: DEFAULT_POLL,
            schedule: None,
            allow: Allowances::default(),
            insecure: false,
            credentials: CredentialFiles::default(),
            history: History::default(),
            limits: Limits::default(),
            forge: None,
            code: Vec::new(),
            notes: false,
            deployments: false,
            previews: true,
            commands: false,
            allowed_signers: None,
            webhook: Vec::new(),
            prometheus: Vec::new(),
            registries: Vec::new(),
        }
    }
}

impl Settings {
    /// Some repositories, with every default.
    pub fn of(repositories: impl IntoIterator<Item = RepositorySettings>) -> Self {
        Self {
            file: None,
            listen: DEFAULT_LISTEN,
            state: None,
            public_url: None,
            repositories: repositories.into_iter().collect(),
            sequences: SequenceSettings::default(),
            retention: RetentionSettings::default(),
            logs: LogLimits::default(),
            journald: false,
            tokens: Vec::new(),
            socket_group: None,
            sinks: Vec::new(),
        }
    }

    /// The files that hold secrets of the daemon's own; the configuration may hold some itself.
    pub fn secret_files(&self) -> Vec<PathBuf> {
        let of_repository = |repository: &RepositorySettings| {
            let CredentialFiles { token, password, ssh_key, .. } = repository.credentials.clone();
            let webhook: Vec<PathBuf> = repository.webhook.iter().filter_map(SecretSource::file).collect();
            let registries = repository.registries.iter().filter_map(|registry| registry.password.as_ref()?.file());
            let registries: Vec<PathBuf> = registries.collect();
            let prometheus = repository.prometheus.iter().flat_map(|it| [&it.token, &it.password]);
            let prometheus: Vec<PathBuf> = prometheus.filter_map(|secret| secret.as_ref()?.file()).collect();
            let app = repository.app().map(|app| app.key_file.clone());
            let own = [token, password, ssh_key, app].into_iter().flatten();
            own.chain(webhook).chain(registries).chain(prometheus)
        };
        let tokens = self.tokens.iter().filter_map(|token| token.token.file());
        let sinks = self.sinks.iter().filter_map(|sink| sink.secret.as_ref()?.file());
        let named = self.repositories.iter().flat_map(of_repository).chain(tokens).chain(sinks);
        named.chain(self.file.clone()).collect()
    }

    /// Reads a file; paths in it are relative to its folder. The files that it names are checked, too.
    ///
    /// # Errors
    /// All problems, in the file's order.
    pub fn load(path: &Path) -> Result<Self, Vec<Problem>> {
        use std::io::Read as _;
        let name = path.display().to_string();
        let unreadable = |error: std::io::Error| {
            vec![
                Problem::in_file(&name, "unreadable", format!("cannot read the configuration: {error}"))
                    .hint("give the file with `--config FILE`"),
            ]
        };
        let mut content = Vec::new();
        let file = std::fs::File::open(path).map_err(unreadable)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 > MAX_BYTES {
            return Err(vec![Problem::in_file(&name, "too-large", "a configuration has at most 1 MiB")]);
        }
        let (mut settings, mut found, files) = Self::read(&name, &content, path.parent().unwrap_or(Path::new("")))?;
        found.extend(files.iter().filter_map(NamedFile::problem));
        settings.file = std::path::absolute(path).ok();
        if found.is_empty() { Ok(settings) } else { Err(fields::sorted(found)) }
    }

    /// Reads a file's content. `file` is its name in messages, `folder` is where relative paths begin.
    ///
    /// # Errors
    /// All problems, in the file's order.
    pub fn parse(file: &str, content: &[u8], folder: &Path) -> Result<Self, Vec<Problem>> {
        let (settings, found, _) = Self::read(file, content, folder)?;
        if found.is_empty() { Ok(settings) } else { Err(fields::sorted(found)) }
    }

    /// What a text says, what is wrong with it, and the files that it names.
    fn read(file: &str, content: &[u8], folder: &Path) -> Result<(Self, Vec<Problem>, Vec<NamedFile>), Vec<Problem>> {
        let reading = yaml::read(content);
        if !reading.errors.is_empty() {
            return Err(reading.errors.into_iter().map(|error| syntax(file, error)).collect());
        }
        let [document] = &reading.documents[..] else {
            let message = "a configuration is one YAML document";
            return Err(vec![Problem::in_file(file, "documents", message).hint("begin with `repositories:`")]);
        };
        let problems = fields::Problems::new(file, document);
        let settings = parse::settings(&Field::root(&problems, document), folder);
        let (found, files) = problems.into_parts();
        Ok((settings, found, files))
    }
}

fn syntax(file: &str, error: yaml::ReadError) -> Problem {
    let location = Location { file: file.to_owned(), line: error.position.line, column: error.position.column };
    let problem = Problem::error(&location, error.code, error.message);
    match error.hint {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}
