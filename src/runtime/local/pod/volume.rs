//! Volumes on a machine without containers: folders, which [`super::surroundings`] puts where the mounts say.
//!
//! Where the machine does not let it, the processes find a volume by the variable `LAUNCHWAY_MOUNT_<VOLUME>`, which
//! `command`, `args` and `env` can use as `$(LAUNCHWAY_MOUNT_<VOLUME>)`; it is always there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};

use super::data;
use super::environment::variable_part;
use super::paths::{self, PodDir};
use super::record::PodRecord;
use crate::model::object::Kind;
use crate::model::pod::{Container, HostPath, KeyToPath, PodSpec, SecurityContext, Volume, VolumeMount};
use crate::runtime::local::host::beneath;
use crate::runtime::local::host::files;

/// The mode of files from ConfigMaps and Secrets, unless they say otherwise (Kubernetes' default).
const DEFAULT_MODE: u32 = 0o644;

/// The mode of a folder that one user has.
const PRIVATE: u32 = 0o700;
/// The mode of a folder that several users share (Kubernetes' for all of `emptyDir`).
const SHARED: u32 = 0o777;
/// The mode of a folder that several users read.
const READABLE: u32 = 0o755;

/// Where a container finds a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The variable that tells it.
    pub(crate) variable: String,
    /// The folder or file.
    pub(crate) path: PathBuf,
    /// `mountPath`.
    pub(crate) mount_path: String,
    /// Whether writing is refused.
    pub(crate) read_only: bool,
    /// The name of the volume, and where all of it is.
    volume: (String, PathBuf),
    /// `subPath`; empty for all of the volume.
    sub_path: PathBuf,
}

impl Mount {
    /// Opens what is to be mounted, wherever links that the volume's users have made since would lead. Fails with what is
    /// wrong, for people.
    pub(crate) fn open(&self, record: &PodRecord) -> Result<OwnedFd, String> {
        let (name, folder) = &self.volume;
        let base = beneath::open_place(folder).map_err(|error| format!("volume `{name}`: {error}"))?;
        let opened = match self.sub_path.as_os_str().is_empty() {
            true => base,
            false => beneath::open_below(base.as_fd(), &self.sub_path)
                .map_err(|error| wrong_sub_path(name, &self.sub_path, &error))?,
        };
        let from_machine = find(record, name).is_some_and(|volume| volume.host_path.is_some());
        if from_machine {
            let real = fs::read_link(beneath::path_of(&opened)).map_err(|error| format!("volume `{name}`: {error}"))?;
            allowed_host_path(record, &real).map_err(|problem| format!("volume `{name}`: {problem}"))?;
        }
        Ok(opened)
    }
}

/// Where a container finds its volumes, in the order of its mounts. A volume's second mount ends in `_2`.
pub(crate) fn mounts(record: &PodRecord, dir: &PodDir, container: &Container) -> Vec<Mount> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let wanted = container.volume_mounts.iter().filter_map(|mount| Some((mount, find(record, &mount.name)?)));
    wanted
        .map(|(mount, volume)| {
            let count = counts.entry(&mount.name).and_modify(|count| *count += 1).or_insert(1);
            let suffix = if *count == 1 { String::new() } else { format!("_{count}") };
            let variable = format!("LAUNCHWAY_MOUNT_{}{suffix}", variable_part(&mount.name));
            let base = folder(record, dir, volume);
            let sub_path = sub_path(mount);
            let path = if sub_path.as_os_str().is_empty() { base.clone() } else { base.join(&sub_path) };
            let claim_read_only = volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.read_only);
            Mount {
                variable,
                path,
                mount_path: mount.mount_path.clone(),
                read_only: mount.read_only || claim_read_only,
                volume: (volume.name.clone(), base),
                sub_path,
            }
        })
        .collect()
}

/// `subPath` without what means nothing in it.
fn sub_path(mount: &VolumeMount) -> PathBuf {
    let parts = Path::new(mount.sub_path.as_deref().unwrap_or("")).components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

fn wrong_sub_path(volume: &str, path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::CrossesDevices => {
            format!("the `subPath` of volume `{volume}` leaves it by a link: `{}`", path.display())
        }
        _ => format!("the `subPath` of volume `{volume}`, `{}`: {error}", path.display()),
    }
}

fn find<'a>(record: &'a PodRecord, name: &str) -> Option<&'a Volume> {
    record.pod.template.spec.volumes.iter().find(|volume| volume.name == name)
}

fn folder(record: &PodRecord, dir: &PodDir, volume: &Volume) -> PathBuf {
    match (&volume.persistent_volume_claim, &volume.host_path) {
        (Some(claim), _) => record.claims.join(&claim.claim_name),
        (None, Some(host)) => PathBuf::from(&host.path),
        (None, None) => dir.volume(&volume.name),
    }
}

/// Makes all volumes of a pod, with what they hold. Fails with what is wrong, for people.
pub(crate) fn make_all(record: &PodRecord, dir: &PodDir) -> Result<(), String> {
    check_mounts(record)?;
    for volume in &record.pod.template.spec.volumes {
        paths::component(&volume.name).map_err(|failure| failure.to_string())?;
        make(record, dir, volume).map_err(|problem| format!("volume `{}`: {problem}", volume.name))?;
    }
    for container in record.containers() {
        make_sub_paths(record, dir, container)?;
    }
    Ok(())
}

fn check_mounts(record: &PodRecord) -> Result<(), String> {
    for mount in record.containers().flat_map(|container| &container.volume_mounts) {
        if find(record, &mount.name).is_none() {
            return Err(format!("there is no volume `{}`", mount.name));
        }
        if !mount.sub_path.as_deref().is_none_or(stays_inside) {
            return Err(format!("the `subPath` of volume `{}` leaves it", mount.name));
        }
    }
    Ok(())
}

fn stays_inside(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn make(record: &PodRecord, dir: &PodDir, volume: &Volume) -> Result<(), String> {
    if let Some(source) = &volume.config_map {
        let wanted = Source { kind: Kind::ConfigMap, name: &source.name, optional: source.optional };
        return make_files(record, dir, volume, &wanted, &source.items, source.default_mode);
    }
    if let Some(source) = &volume.secret {
        let wanted = Source { kind: Kind::Secret, name: &source.secret_name, optional: source.optional };
        return make_files(record, dir, volume, &wanted, &source.items, source.default_mode);
    }
    if let Some(host) = &volume.host_path {
        return check_host_path(record, host);
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        paths::component(&claim.claim_name).map_err(|failure| failure.to_string())?;
    }
    let (path, users) = (folder(record, dir, volume), Users::of(record, &volume.name));
    make_folder(&path, users.owner, users.mode(SHARED))?;
    if volume.persistent_volume_claim.is_some() { users.let_in(&path) } else { Ok(()) }
}

/// A new folder belongs to whom uses it; one that was there stays as it is.
fn make_folder(path: &Path, owner: SecurityContext, mode: u32) -> Result<(), String> {
    if path.is_dir() {
        return Ok(());
    }
    // Whoever uses it gets through, and lists nothing.
    let made =
        path.parent().filter(|parent| !parent.exists()).map_or(Ok(()), |parent| files::make_folder(parent, 0o711));
    made.and_then(|()| fs::DirBuilder::new().mode(PRIVATE).create(path))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(mode)))
        .and_then(|()| chown(path, owner.run_as_user, owner.run_as_group))
        .map_err(|error| format!("cannot make `{}`: {error}", path.display()))
}

/// Who the containers run as that mount a volume.
struct Users {
    /// The first of them; it owns what is made for the volume.
    owner: SecurityContext,
    /// Whether all are the same user.
    is_one: bool,
}

impl Users {
    fn of(record: &PodRecord, volume: &str) -> Self {
        let mounts = |container: &&Container| container.volume_mounts.iter().any(|mount| mount.name == volume);
        let mut users = record.containers().filter(mounts).map(|container| effective_user(record, container));
        let owner = users.next().unwrap_or_default();
        Self { owner, is_one: users.all(|user| id(user) == id(owner)) }
    }

    /// The mode of a folder, which is `shared` where there are several.
    fn mode(&self, shared: u32) -> u32 {
        if self.is_one { PRIVATE } else { shared }
    }

    /// Opens the folder of a claim that other users have had before, in other pods or in this one. Only root has several
    /// users start, and needs no opening itself.
    fn let_in(&self, claim: &Path) -> Result<(), String> {
        let wrong = |error| format!("cannot open `{}` to its users: {error}", claim.display());
        let found = fs::metadata(claim).map_err(wrong)?;
        let is_own = self.is_one && [0, found.uid()].contains(&id(self.owner));
        if !rustix::process::getuid().is_root() || is_own || found.mode() & SHARED == SHARED {
            return Ok(());
        }
        fs::set_permissions(claim, fs::Permissions::from_mode(SHARED)).map_err(wrong)
    }
}

/// The number of the user that is meant; the daemon's own if nothing else is said.
fn id(user: SecurityContext) -> u32 {
    user.run_as_user.unwrap_or_else(|| rustix::process::getuid().as_raw())
}

/// Who a container runs as.
pub(crate) fn effective_user(record: &PodRecord, container: &Container) -> SecurityContext {
    user_of_container(&record.pod.template.spec, container)
}

/// Who a container of a pod runs as: its own word wins over the pod's.
pub(crate) fn user_of_container(spec: &PodSpec, container: &Container) -> SecurityContext {
    let (own, pod) = (container.security_context, spec.security_context);
    SecurityContext {
        run_as_user: own.run_as_user.or(pod.run_as_user),
        run_as_group: own.run_as_group.or(pod.run_as_group),
    }
}

struct Source<'a> {
    kind: Kind,
    name: &'a str,
    optional: bool,
}

fn make_files(
    record: &PodRecord,
    dir: &PodDir,
    volume: &Volume,
    source: &Source<'_>,
    items: &[KeyToPath],
    default_mode: Option<u32>,
) -> Result<(), String> {
    let (users, base) = (Users::of(record, &volume.name), dir.volume(&volume.name));
    make_folder(&base, users.owner, users.mode(READABLE))?;
    let Some(content) = record.object(&source.kind, source.name) else {
        return if source.optional { Ok(()) } else { Err(format!("there is no {} `{}`", source.kind, source.name)) };
    };
    let mut entries = data::entries(&source.kind, content)?;
    let all: Vec<KeyToPath> =
        entries.keys().map(|key| KeyToPath { key: key.clone(), path: key.clone(), mode: None }).collect();
    for item in if items.is_empty() { &all } else { items } {
        let Some(value) = entries.get_mut(&item.key) else {
            if source.optional {
                continue;
            }
            return Err(format!("{} `{}` has no key `{}`", source.kind, source.name, item.key));
        };
        let mode = item.mode.or(default_mode).unwrap_or(DEFAULT_MODE) & 0o777;
        write_file(&base, &item.path, value, mode, &users)?;
    }
    Ok(())
}

fn write_file(base: &Path, path: &str, content: &[u8], mode: u32, users: &Users) -> Result<(), String> {
    if path.is_empty() || !stays_inside(path) {
        return Err(format!("`{path}` leaves the volume"));
    }
    let target = base.join(path);
    for folder in target.ancestors().skip(1).take_while(|folder| *folder != base).collect::<Vec<_>>().iter().rev() {
        make_folder(folder, users.owner, users.mode(READABLE))?;
    }
    files::remove_if_there(&target)
        .and_then(|()| fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target))
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::set_permissions(&target, fs::Permissions::from_mode(mode)))
        .and_then(|()| chown(&target, users.owner.run_as_user, users.owner.run_as_group))
        .map_err(|error| format!("cannot write `{}`: {error}", target.display()))
}

fn check_host_path(record: &PodRecord, host: &HostPath) -> Result<(), String> {
    let (path, kind) = (Path::new(&host.path), host.kind.as_deref().unwrap_or(""));
    // Where it really is counts, whatever links lead there; what does not exist yet is judged by its parent.
    let existing = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let real = existing.canonicalize().map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    if !path.is_absolute() || host.path.contains("..") {
        return Err(format!("`{}` is no absolute path without `..`", host.path));
    }
    allowed_host_path(record, &real)?;
    let made = match kind {
        "DirectoryOrCreate" => fs::create_dir_all(path),
        "FileOrCreate" => fs::OpenOptions::new().create(true).append(true).open(path).map(drop),
        _ => Ok(()),
    };
    made.map_err(|error| format!("cannot make `{}`: {error}", host.path))?;
    let fits = match kind {
        "Directory" | "DirectoryOrCreate" => path.is_dir(),
        "File" | "FileOrCreate" => path.is_file(),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("`{}` is not there, or not a {kind}", host.path)) }
}

/// Whether a folder of the machine, in whose path no links are, may be mounted.
fn allowed_host_path(record: &PodRecord, real: &Path) -> Result<(), String> {
    let allowed = |folder: &PathBuf| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    if !record.host_paths.iter().any(allowed) {
        return Err(format!("`{}` is not among this repository's `allow.hostPaths`", real.display()));
    }
    if record.hidden.iter().any(|hidden| real.starts_with(hidden)) {
        return Err(format!("`{}` is in launchway's state folder, which no pod gets", real.display()));
    }
    Ok(())
}

fn make_sub_paths(record: &PodRecord, dir: &PodDir, container: &Container) -> Result<(), String> {
    let user = effective_user(record, container);
    for (mount, path) in container.volume_mounts.iter().map(|mount| (mount, sub_path(mount))) {
        let Some(volume) = find(record, &mount.name).filter(|_| !path.as_os_str().is_empty()) else { continue };
        let wrong = |error: io::Error| wrong_sub_path(&volume.name, &path, &error);
        let base = beneath::open_place(&folder(record, dir, volume)).map_err(wrong)?;
        if volume.host_path.is_some() {
            // Nothing is made where it could not be mounted.
            let real = real_below(&base, &path).map_err(wrong)?;
            allowed_host_path(record, &real).map_err(|problem| format!("volume `{}`: {problem}", volume.name))?;
        }
        let (mode, owner) = (Users::of(record, &mount.name).mode(SHARED), (user.run_as_user, user.run_as_group));
        beneath::make_folders(base.as_fd(), &path, mode, owner).map_err(wrong)?;
    }
    Ok(())
}

/// Where a path below an open folder really is, or would be.
fn real_below(base: &OwnedFd, path: &Path) -> io::Result<PathBuf> {
    let opened = |there: &Path| Some((there.to_owned(), beneath::open_below(base.as_fd(), there).ok()?));
    let found = path.ancestors().filter(|there| !there.as_os_str().is_empty()).find_map(opened);
    let (there, real) = match &found {
        Some((there, file)) => (there.as_path(), fs::read_link(beneath::path_of(file))?),
        None => (Path::new(""), fs::read_link(beneath::path_of(base))?),
    };
    Ok(path.strip_prefix(there).map_or(real.clone(), |rest| real.join(rest)))
}

/// The home folder belongs to the user of the pod's first container, or is open to all users that the pod has.
pub(crate) fn own_home(record: &PodRecord, dir: &PodDir) -> Result<(), String> {
    let mut users = record.containers().map(|container| effective_user(record, container));
    let first = record.pod.template.spec.containers.first();
    let owner = first.map(|container| effective_user(record, container)).unwrap_or_default();
    let users = Users { owner, is_one: users.all(|user| id(user) == id(owner)) };
    fs::set_permissions(dir.home(), fs::Permissions::from_mode(users.mode(SHARED)))
        .and_then(|()| chown(dir.home(), owner.run_as_user, owner.run_as_group))
        .map_err(|error| format!("cannot own the home folder: {error}"))
}
