//! The room `source` against real Git.

mod support {
    pub(crate) mod git;
    pub(crate) mod git_http;
}

mod source_edges {
    mod transport;
}
