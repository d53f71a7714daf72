//! What makes launchway look at a repository again; none of it carries state.
