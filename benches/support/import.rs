//! Many files at once, without a work tree.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use launchway::clock::{Clock as _, SystemClock};

use super::git::git;

/// Commits to `main` of an empty bare repository. It is one process from the beginning to the end, because a process
/// that has grown large takes long to start another one, and feels it long after.
pub(crate) struct Importer {
    child: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Importer {
    pub(crate) fn start(bare: &Path) -> Self {
        let import = git(bare).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = import.unwrap();
        let input = BufWriter::new(child.stdin.take().unwrap());
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    /// Commits files on top of what is there, as a pack of their own; the branch has moved when this returns.
    pub(crate) fn commit(&mut self, files: impl IntoIterator<Item = (String, String)>) {
        // As people commit: commits of one and the same second make Git read more of the history.
        let now = SystemClock.now().0 / 1000;
        let committer = format!("committer Ada <ada@example.org> {now} +0000");
        write!(self.input, "commit refs/heads/main\n{committer}\ndata 6\nChange\n").unwrap();
        for (path, content) in files {
            write!(self.input, "M 100644 inline {path}\ndata {}\n{content}\n", content.len()).unwrap();
        }
        self.input.write_all(b"checkpoint\nprogress done\n").unwrap();
        self.input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "progress done\n");
    }

    /// Ends it.
    pub(crate) fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}
