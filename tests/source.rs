//! The room `source` against real Git.

mod support {
    pub(crate) mod git;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git_http;
}

mod source_edges {
    mod branch;
    mod content;
    mod damage;
    mod merge;
    mod mirror;
    mod notes;
    mod owner;
    mod sshd;
    mod tags;
    mod tls;
    mod transport;
}
