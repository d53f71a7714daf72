//! Today's program takes over what the one before has left in the middle of a rollout: nothing restarts, the run ends,
//! the first plan is empty.

#![expect(clippy::unwrap_used, reason = "in a test, that is how it fails")]

mod support {
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod daemon;
    #[expect(dead_code, reason = "other tests need more of it")]
    pub(crate) mod git;
}

mod upgrades {
    mod fixture;
    mod going_back;
    mod migration;
    mod rollout;
    mod takeover;
}
