//! What root's processes in a pod give up: the capabilities that reach past files' permissions and other processes.

use std::io;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_capabilities,
};

/// What is kept: what containers get, without the making of devices, from which only a container's own rules protect.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::AUDIT_WRITE);

/// Gives up the rest, for this process and all that it becomes or starts. The process must have one thread.
pub(super) fn give_up() -> io::Result<()> {
    // A process of any other user's loses all of them when it becomes the command.
    if !geteuid().is_root() {
        return Ok(());
    }
    let own = capabilities(None)?;
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) if !KEPT.contains(capability) => remove_capability_from_bounding_set(capability)?,
            Ok(_) => {}
            // The kernel knows no more of them.
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let CapabilitySets { effective, permitted, inheritable } = own;
    let kept =
        CapabilitySets { effective: effective & KEPT, permitted: permitted & KEPT, inheritable: inheritable & KEPT };
    Ok(set_capabilities(None, kept)?)
}
