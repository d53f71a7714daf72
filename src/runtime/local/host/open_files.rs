//! How many files a process may have open. A proxy holds two for every connection, and a daemon may hold one for every
//! pod, and users usually get 1,024 unless they ask for more; what it starts gets what it would have had.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The variable by which a process that is started knows what it may have.
pub(crate) const VARIABLE: &str = "LAUNCHWAY_OPEN_FILES";

/// Lets this process have as many as its user may; says how many it had before, if that was fewer.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    (current != maximum && setrlimit(Resource::Nofile, raised).is_ok()).then_some(current)?
}

/// How many this process may have; `None` if that is not limited.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Makes this process one that was started as if nothing had been raised.
pub(crate) fn restore() {
    let before = std::env::var(VARIABLE).ok().and_then(|number| number.parse().ok());
    if let Some(before) = before {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // It may always have fewer than it has.
        setrlimit(Resource::Nofile, Rlimit { current: Some(before), maximum }).ok();
    }
}
