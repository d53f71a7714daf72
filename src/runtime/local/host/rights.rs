//! Landlock: what a process gives up of its own rights, for itself and all that it starts, without being root.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags,
};

use super::beneath;
use super::isolation::Own;

/// The newest version whose rights are known here; an older kernel has fewer, and uses those.
const KNOWN: ABI = ABI::V9;
/// What is given up where nothing else is: to make raw disks. A set of rights cannot be empty.
const LEAST: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeBlock | Refer});
/// The most files and folders beside the hidden ones and those above them.
const MAX_ENTRIES: usize = 10_000;

/// Gives up looking into processes outside, changing mounts, and all that `hidden` folders hold but what is `own`. What
/// the kernel offers, by the number of its version; nothing if it has too little of it. The process must have one thread.
///
/// What is made beside a hidden folder or one above it after this is out of reach, too, and nothing can be made there: the
/// kernel takes what is allowed, not what is refused. Names of what is hidden can be listed.
pub(super) fn give_up(hidden: &[PathBuf], own: &[Own]) -> Result<Option<i32>, io::Error> {
    let top = Path::new("/");
    let rules = if hidden.is_empty() {
        // Without this right nothing could be moved from one folder to another. A kernel that lacks it is left alone.
        allow(restricting(LEAST)?, top, AccessFs::Refer.into())?
    } else {
        let all = AccessFs::from_all(KNOWN);
        let mut rules = allow(restricting(all)?, top, AccessFs::ReadDir.into())?;
        for path in beside(hidden)? {
            rules = allow(rules, &path, all)?;
        }
        for Own { file, read_only, .. } in own {
            // A volume of the machine: what lies in it beside a hidden folder is allowed already, and nothing else is.
            let real = fs::read_link(beneath::path_of(file))?;
            if hidden.iter().any(|folder| folder.starts_with(&real)) {
                continue;
            }
            // A socket may be asked where nothing may be changed.
            let rights = if *read_only { AccessFs::from_read(KNOWN) | AccessFs::ResolveUnix } else { all };
            rules = rules.add_rule(PathBeneath::new(file, rights)).map_err(io::Error::other)?;
        }
        rules
    };
    let status = rules.restrict_self().map_err(io::Error::other)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as i32),
        _ => None,
    })
}

fn restricting(rights: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let ruleset = Ruleset::default().handle_access(rights).and_then(Ruleset::create);
    ruleset.map_err(io::Error::other)
}

/// What cannot be opened, because it went away or is another user's, is no loss.
fn allow(rules: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let added: Result<RulesetCreated, RulesetError> = rules.add_rule(PathBeneath::new(file, rights));
    added.map_err(io::Error::other)
}

/// All that lies beside folders and those above them, without what leads to one of them. Links are left out: what they lead
/// to is where it is, or is hidden.
fn beside(folders: &[PathBuf]) -> io::Result<BTreeSet<PathBuf>> {
    let above: BTreeSet<&Path> = folders.iter().flat_map(|folder| folder.ancestors().skip(1)).collect();
    let leads_there = |path: &Path| folders.iter().any(|folder| folder.starts_with(path));
    let mut found = BTreeSet::new();
    for folder in above.into_iter().filter(|folder| !folders.iter().any(|hidden| folder.starts_with(hidden))) {
        // What cannot be listed by this user is closed to it already.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let entry = entry?;
            let path = entry.path();
            if !leads_there(&path) && !entry.file_type()?.is_symlink() {
                found.insert(path);
            }
            if found.len() > MAX_ENTRIES {
                return Err(io::Error::other(format!("`{}` holds too much", folder.display())));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beside_a_hidden_folder_does_not_lead_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("lib/state/store")).unwrap();
        fs::create_dir_all(root.join("lib/other/deep")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        std::os::unix::fs::symlink(root.join("lib/state"), root.join("way-in")).unwrap();
        let found = beside(&[root.join("lib/state")]).unwrap();
        let here: Vec<&PathBuf> = found.iter().filter(|path| path.starts_with(&root)).collect();
        assert_eq!(here, [&root.join("file"), &root.join("lib/other")]);
        assert!(found.contains(Path::new("/proc")) && !found.iter().any(|path| root.starts_with(path)));
    }
}
