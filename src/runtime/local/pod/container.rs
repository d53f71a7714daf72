//! `launchway container <pod dir> <container> <parent> [command…]`: puts everything in place for a command of a pod,
//! then becomes it. What goes wrong is written to standard input, which is a pipe to the shim. A command that enters from
//! outside (parent 0) has streams of its own from the start: it is in a session of its own, on its terminal if it has one,
//! and what goes wrong is said on standard error, as shells do.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{Access, access, fchown};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, Uid, getppid, getrlimit, ioctl_tiocsctty, set_parent_process_death_signal,
    setrlimit, setsid, umask,
};
use rustix::termios::isatty;

use super::environment::{self, Variables};
use super::expand::expand;
use super::paths::PodDir;
use super::record::PodRecord;
use super::status::PodStatus;
use super::surroundings::Surroundings;
use super::volume;
use crate::model::pod::{Container, SecurityContext};
use crate::runtime::local::host::cgroup::{Limits, PodGroups};
use crate::runtime::local::host::unrunnable;
use crate::runtime::local::host::user::become_user;

/// Where the entry point of a launchable is.
const ENTRY_POINT: &str = "bin/launch";
/// What makes programs of a launchable, before it is sealed.
const BUILD: &str = "bin/build";
/// The most files that a process may have open, unless the machine allows fewer.
const MAX_FILES: u64 = 65_536;
/// The most processes of one user, unless the machine allows fewer: a fork bomb ends here.
const MAX_PROCESSES: u64 = 16_384;
/// The parent of a command that enters from outside.
const FROM_OUTSIDE: &str = "0";
/// The exit code if the command could not be started, as shells have it.
const CANNOT_START: u8 = 127;

/// Runs the verb; returns only if the command could not be started.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    let failure = rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3);
    let problem = start(arguments);
    // If nobody listens any more, nobody needs to know.
    if arguments.get(2).is_some_and(|parent| parent == FROM_OUTSIDE) {
        std::io::stderr().write_all(format!("launchway: {problem}\n").as_bytes()).ok();
    } else if let Ok(failure) = failure {
        std::fs::File::from(failure).write_all(problem.as_bytes()).ok();
    }
    ExitCode::from(CANNOT_START)
}

/// Becomes the command, or says why not.
fn start(arguments: &[OsString]) -> String {
    let [dir, container, parent, command @ ..] = arguments else {
        return "usage: launchway container POD_DIR CONTAINER PARENT [COMMAND…]".to_owned();
    };
    let command: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let parent = parent.to_str().and_then(|parent| parent.parse().ok()).and_then(Pid::from_raw);
    let started = read(&PodDir::new(dir), &container.to_string_lossy(), command).and_then(|mut setting| {
        if parent.is_none() {
            enter(&mut setting)?;
        }
        join_group(&setting)?;
        let entered = setting.surroundings.enter()?;
        entered.lacking.iter().for_each(|lacking| setting.note(lacking));
        let Surroundings { folder, image, .. } = &setting.surroundings;
        let program = find_program(&setting.words, &setting.search_path, folder, image.as_deref())?;
        set_up(&setting, parent)?;
        if let Err(problem) = entered.isolation.confine(entered.hiding) {
            setting.note(&format!("not all is kept from this pod that is not its own: {problem}"));
        }
        let stdin = if parent.is_none() { Stdio::inherit() } else { Stdio::null() };
        Ok(become_command(&setting, &program, stdin))
    });
    started.unwrap_or_else(|problem| problem)
}

/// What is to run, and how.
#[derive(Debug)]
struct Setting {
    /// Whether it is the container's own command, whose output is its log.
    has_log: bool,
    words: Vec<String>,
    variables: Variables,
    search_path: String,
    user: SecurityContext,
    surroundings: Surroundings,
    container: String,
    limits: Limits,
    groups: PodGroups,
}

impl Setting {
    /// Writes to the container's log. If that is gone, so is whoever would read it.
    fn note(&self, message: &str) {
        if self.has_log {
            std::io::stderr().write_all(format!("launchway: {message}\n").as_bytes()).ok();
        }
    }
}

fn read(dir: &PodDir, container: &str, command: Vec<String>) -> Result<Setting, String> {
    let record = PodRecord::read(dir).map_err(|failure| failure.one_line())?.ok_or("the pod is gone")?;
    let container = record.container(container).ok_or_else(|| format!("there is no container `{container}`"))?;
    let variables = environment::of_container(&record, dir, container)?;
    let folder = working_folder(&record, dir, container, &variables);
    Ok(Setting {
        has_log: command.is_empty(),
        words: if command.is_empty() { own_command(&record, container, &variables)? } else { command },
        user: volume::effective_user(&record, container),
        limits: Limits::of(&container.resources),
        container: container.name.clone(),
        groups: PodStatus::read(dir).map_err(|failure| failure.one_line())?.map(|it| it.groups).unwrap_or_default(),
        search_path: record.search_path.clone(),
        surroundings: Surroundings {
            image: record.images.get(&container.name).cloned(),
            mounts: volume::mounts(&record, dir, container),
            dir: dir.clone(),
            folder,
            record: record.clone(),
        },
        variables,
    })
}

/// Makes a session of its own, on the terminal if there is one, which its user can open anew by its name.
fn enter(setting: &mut Setting) -> Result<(), String> {
    let wrong = |error: rustix::io::Errno| format!("cannot make a session: {error}");
    setsid().map_err(wrong)?;
    let terminal = std::io::stdin();
    if isatty(&terminal) {
        ioctl_tiocsctty(&terminal).map_err(wrong)?;
        let user = setting.user.run_as_user.map(Uid::from_raw);
        fchown(&terminal, user, None).map_err(wrong)?;
        setting.variables.extend(std::env::var("TERM").ok().map(|kind| ("TERM".to_owned(), kind)));
    }
    Ok(())
}

/// Enters the container's group, which limits memory and processor time and ends with the pod. Where the machine does not
/// enforce a limit, the log says so.
fn join_group(setting: &Setting) -> Result<(), String> {
    let entered = setting.groups.enter(&setting.container, setting.limits);
    let problem = entered.map_err(|error| format!("cannot enter the control group of the pod: {error}"))?;
    if let Some(problem) = problem {
        setting.note(&format!("resource limits are not enforced: this machine gives us no control group: {problem}"));
    }
    Ok(())
}

/// The launchable's root, unless `workingDir` says otherwise; the pod's home if the image is `host`.
fn working_folder(record: &PodRecord, dir: &PodDir, container: &Container, variables: &Variables) -> PathBuf {
    let base = record.images.get(&container.name).cloned().unwrap_or_else(|| dir.home());
    let asked = container.working_dir.as_deref().map(|folder| expand(folder, variables));
    asked.map_or(base.clone(), |folder| base.join(folder))
}

fn own_command(record: &PodRecord, container: &Container, variables: &Variables) -> Result<Vec<String>, String> {
    let mut words: Vec<String> = container.command.iter().map(|word| expand(word, variables)).collect();
    if words.is_empty() {
        let image = record.images.get(&container.name);
        let image = image.ok_or("image `host` has no entry point of its own: give a `command`")?;
        words.push(image.join(ENTRY_POINT).display().to_string());
    }
    words.extend(container.args.iter().map(|word| expand(word, variables)));
    Ok(words)
}

/// Looks a command up as a shell would: with a slash it is a path, else the search path is gone through.
fn find_program(words: &[String], search_path: &str, folder: &Path, root: Option<&Path>) -> Result<PathBuf, String> {
    if !folder.is_dir() {
        return Err(format!("the working directory `{}` is not there", folder.display()));
    }
    let command = words.first().filter(|command| !command.is_empty()).ok_or("the command is empty")?;
    if command.contains('/') {
        // Without the `.` of `./run` in its middle, which nobody wrote there.
        let path: PathBuf = folder.join(command).components().collect();
        return match (runs(&path), path.is_file()) {
            (true, _) => Ok(path),
            (false, true) => Err(format!("`{}` is not executable", named(&path, root).display())),
            (false, false) => Err(missing(&path, root)),
        };
    }
    let folders = search_path.split(':').filter(|folder| !folder.is_empty());
    let found = folders.map(|place| folder.join(place).join(command)).find(|path| runs(path));
    found.ok_or_else(|| format!("command not found: `{command}` is in none of {search_path}"))
}

fn runs(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// What its program, of those that a launchable brings along, lacks to be started, before there is a pod: it would be
/// missing whenever it is tried. What a link, a variable or a volume may lead to is only seen in the pod.
pub(crate) fn lacks_program(container: &Container, root: &Path) -> Option<String> {
    let folder = container.working_dir.as_deref().unwrap_or_default();
    let (folder, word) = container.command.first().map_or(("", ENTRY_POINT), |word| (folder, word));
    let is_plain = |path: &str| !path.contains('$') && Path::new(path).components().all(is_downwards);
    let is_mounted = container.volume_mounts.iter().any(|mount| !mount.mount_path.starts_with('/'));
    if !word.contains('/') || !is_plain(word) || !is_plain(folder) || is_mounted {
        return None;
    }
    let mut way = root.to_owned();
    let is_linked = Path::new(folder).join(word).components().any(|part| {
        way.push(part);
        way.is_symlink()
    });
    if is_linked {
        return None;
    }
    find_program(&[word.to_owned()], "", &root.join(folder), Some(root)).err()
}

fn is_downwards(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_) | Component::CurDir)
}

/// What `bin/build` should have made is known to be missing only now that it has run.
fn missing(path: &Path, root: Option<&Path>) -> String {
    let inside = root.and_then(|root| Some((root, path.strip_prefix(root).ok()?)));
    let (file, built) = match inside {
        Some((root, inside)) if runs(&root.join(BUILD)) => (inside, format!(", and `{BUILD}` has made none")),
        Some((_, inside)) => (inside, " in the image".to_owned()),
        None => (path, String::new()),
    };
    format!("command not found: there is no file `{}`{built}", file.display())
}

/// Sets limits, user and the bond to whom started it. This process has one thread, so what holds for a thread holds
/// for all of it.
fn set_up(setting: &Setting, parent: Option<Pid>) -> Result<(), String> {
    limit(Resource::Nofile, MAX_FILES);
    limit(Resource::Nproc, MAX_PROCESSES);
    limit(Resource::Core, 0);
    umask(rustix::fs::Mode::from_raw_mode(0o022));
    become_user(setting.user)?;
    let Some(parent) = parent else { return Ok(()) };
    // Changing the user ends an earlier bond, so it is made last; a parent that died before is noticed here.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    if getppid() == Some(parent) { Ok(()) } else { Err("its shim is gone".to_owned()) }
}

fn limit(resource: Resource, most: u64) {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
    // Lowering the soft limit needs no privilege, so this cannot fail.
    setrlimit(resource, Rlimit { current, maximum }).ok();
}

fn become_command(setting: &Setting, program: &Path, stdin: Stdio) -> String {
    let mut command = Command::new(program);
    if let [first, rest @ ..] = setting.words.as_slice() {
        command.arg0(first).args(rest);
    }
    command.env_clear().envs(&setting.variables).current_dir(&setting.surroundings.folder).stdin(stdin);
    let error = command.exec();
    let named = named(program, setting.surroundings.image.as_deref());
    format!("cannot run `{}`: {}", named.display(), unrunnable::why(program, &error))
}

/// A program as the launchable names it, which people know, if it is in one.
fn named<'a>(program: &'a Path, root: Option<&Path>) -> &'a Path {
    root.and_then(|root| program.strip_prefix(root).ok()).unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, mode: u32) {
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_command_is_found_where_a_shell_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        file(&folder.path().join("run"), 0o755);
        file(&folder.path().join("data"), 0o644);
        let path = folder.path().display().to_string();
        let search_path = format!("/nowhere:{path}");
        let found = |command: &str| find_program(&[command.to_owned()], &search_path, folder.path(), None);
        assert_eq!(found("run").unwrap(), folder.path().join("run"));
        assert_eq!(found("./run").unwrap(), folder.path().join("./run"));
        assert!(found("none").unwrap_err().contains("/nowhere"));
        assert!(found("./none").unwrap_err().contains(&format!("`{path}/none`")));
        assert!(found("./data").unwrap_err().contains("not executable"));
        assert!(found("").is_err());
    }

    #[test]
    fn what_is_missing_is_named_as_in_the_repository_with_what_should_have_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let said = || missing(&folder.path().join("./bin/x"), Some(folder.path()));
        assert_eq!(said(), "command not found: there is no file `bin/x` in the image");
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        file(&folder.path().join(BUILD), 0o755);
        assert_eq!(said(), "command not found: there is no file `bin/x`, and `bin/build` has made none");
    }

    #[test]
    fn a_launchable_lacks_only_what_it_has_to_bring_itself() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("/nowhere", folder.path().join("bin/link")).unwrap();
        file(&folder.path().join("bin/data"), 0o644);
        file(&folder.path().join("bin/run"), 0o755);
        let missing = |file: &str| Some(format!("command not found: there is no file `{file}` in the image"));
        let mounts = json!([{"name": "v", "mountPath": "bin"}]);
        let table = [
            (json!({}), missing("bin/launch")),
            (json!({"workingDir": "bin"}), missing("bin/launch")),
            (json!({"command": ["bin/data"]}), Some("`bin/data` is not executable".to_owned())),
            (json!({"command": ["./data"], "workingDir": "bin"}), Some("`bin/data` is not executable".to_owned())),
            (json!({"command": ["bin/run", "bin/none"]}), None),
            (json!({"command": ["bin/none"]}), missing("bin/none")),
            (json!({"command": ["./none"], "workingDir": "./bin/."}), missing("bin/none")),
            (json!({"command": ["bin/none"], "volumeMounts": mounts}), None),
            (
                json!({"command": ["bin/none"], "volumeMounts": [{"name": "v", "mountPath": "/bin"}]}),
                missing("bin/none"),
            ),
            (json!({"command": ["bin/none"], "workingDir": "/srv"}), None),
            (json!({"command": ["bin/$(NAME)"]}), None),
            (json!({"command": ["bin/link"]}), None),
            (json!({"command": ["bin/link/x"]}), None),
            (json!({"command": ["../x"]}), None),
            (json!({"command": ["/no/such"]}), None),
            (json!({"command": ["none"]}), None),
        ];
        for (mut container, expected) in table {
            container["name"] = json!("main");
            let parsed: Container = serde_json::from_value(container.clone()).unwrap();
            assert_eq!(lacks_program(&parsed, folder.path()), expected, "{container}");
        }
    }
}
