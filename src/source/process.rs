//! What libgit2 knows once for the whole process. The only file here with `unsafe` code.

use std::ffi::c_int;
use std::sync::OnceLock;

use git2::{ConfigLevel, Error, opts};

use super::git::failed;
use super::transport::smart;
use crate::error::Result;

/// Pack files that are open at a time; libgit2 has no bound of its own, and file descriptors have.
const MAX_OPEN_PACKS: usize = 256;

/// Objects of one pack that is fetched. As many as a pack says that it has, memory is taken for, before one has come.
const MAX_PACK_OBJECTS: usize = 50_000_000;

/// Makes libgit2 ready. Every function that opens a repository calls this first; only the first call does anything.
pub(super) fn configure() -> Result<()> {
    static CONFIGURED: OnceLock<std::result::Result<(), String>> = OnceLock::new();
    let outcome = CONFIGURED.get_or_init(|| set_options().map_err(|error| error.message().to_owned()));
    let error = |message: &String| failed(|| "cannot set up libgit2".to_owned())(Error::from_str(message));
    outcome.as_ref().copied().map_err(error)
}

#[expect(
    unsafe_code,
    reason = "libgit2's global options and transports; OnceLock lets only one thread in, before any use"
)]
fn set_options() -> std::result::Result<(), Error> {
    for level in [ConfigLevel::Global, ConfigLevel::XDG, ConfigLevel::System, ConfigLevel::ProgramData] {
        // A person's configuration must not change where we connect to (`url.<base>.insteadOf`).
        // SAFETY: no other thread uses libgit2 yet.
        unsafe { opts::set_search_path(level, "")? };
    }
    // SAFETY: as above. Ownership is checked by Git because its own configuration can run programs; libgit2 runs
    // none, and whoever names a path to us has said that it may be read.
    unsafe { opts::set_verify_owner_validation(false)? };
    // SAFETY: as above.
    unsafe { opts::set_mwindow_file_limit(MAX_OPEN_PACKS)? };
    let option = c_int::try_from(libgit2_sys::GIT_OPT_SET_PACK_MAX_OBJECTS as i64).unwrap_or_default();
    // SAFETY: as above, and the option takes a `size_t`.
    let set = unsafe { libgit2_sys::git_libgit2_opts(option, MAX_PACK_OBJECTS) };
    if set < 0 {
        return Err(Error::from_str("the most objects of a pack cannot be set"));
    }
    // SAFETY: as above; no transport is made before this returns.
    unsafe { git2::transport::register(smart::SCHEME, smart::create) }
}
