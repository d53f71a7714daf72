//! Sequences: tasks of a stage for one service, the slot they share, and what follows them.

pub mod dataflow;
pub mod from_git;
pub mod incoming;
pub mod machine;
pub mod pod_result;
pub mod promotion;
pub mod queue;
pub mod slot;
pub mod tags;
pub mod task_pod;
