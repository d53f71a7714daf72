//! Becoming another user.

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};

use crate::model::pod::SecurityContext;

/// Makes this process, which must have one thread, another user's where that is asked for. A user without a group gets the
/// group of the same number, and no others.
pub(crate) fn become_user(asked: SecurityContext) -> Result<(), String> {
    let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let user = asked.run_as_user.filter(|user| *user != own.0);
    if let Some(group) = asked.run_as_group.filter(|group| *group != own.1).or(user) {
        let id = Gid::from_raw(group);
        let changed = set_thread_groups(&[id]).and_then(|()| set_thread_gid(id));
        changed.map_err(|error| format!("cannot become group {group}: {error}"))?;
    }
    let Some(user) = user else { return Ok(()) };
    set_thread_uid(Uid::from_raw(user)).map_err(|error| format!("cannot become user {user}: {error}"))
}
