//! The daemon as people use it: real processes, real Git, real HTTP.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

mod support {
    pub(crate) mod daemon;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git_http;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod github_app;
    pub(crate) mod program;
}

mod daemon_edges {
    mod access;
    mod another_life;
    mod answers;
    mod approvals;
    mod at_once;
    mod at_rest;
    mod bad_input;
    mod by_hand;
    mod calls;
    mod checks;
    mod code;
    mod comments;
    mod custom;
    mod damage;
    mod dead_disk;
    mod deployments;
    mod environments;
    mod evaluation;
    mod events;
    mod exec;
    mod full_disk;
    mod hostile;
    mod hosting;
    mod images;
    mod imported;
    mod lost_mirror;
    mod many;
    mod openshift;
    mod orders;
    mod previews;
    mod proposals;
    mod proxies;
    mod pull_environments;
    mod pushed;
    mod registration;
    mod repositories;
    mod results;
    mod rollback;
    mod rules;
    mod secrets;
    mod sequences;
    mod simulated;
    mod sinks;
    mod slow_remote;
    mod strategies;
    mod survival;
    mod thread;
    mod triggers;
    mod troubles;
    mod typos;
    mod verbs;
}
