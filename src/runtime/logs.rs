//! What is asked for of the output of containers.

use futures::TryStreamExt as _;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::model::time::Timestamp;

/// Which part of a pod's output, and how it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Of this container alone; of all if absent, each line then with the container's name before it where the pod has
    /// several.
    pub container: Option<String>,
    /// The last so many lines of each container; all that is kept if absent.
    pub tail: Option<u64>,
    /// The last so many bytes of each container.
    pub bytes: Option<u64>,
    /// What was printed since then. What an earlier version of the program has kept does not say when it was printed, and
    /// counts as later.
    pub since: Option<Timestamp>,
    /// When each line was printed stands before it.
    pub timestamps: bool,
    /// What a container printed before it was started again for the last time; else all of its runs.
    pub previous: bool,
    /// Go on with what comes until the pod ends.
    pub follow: bool,
}

/// Output as it comes, in whole lines, oldest first.
pub type LogStream = BoxStream<'static, Result<Vec<u8>>>;

/// All of an output that has an end.
///
/// # Errors
/// If it cannot be read.
pub async fn whole(output: LogStream) -> Result<Vec<u8>> {
    output.try_concat().await
}
