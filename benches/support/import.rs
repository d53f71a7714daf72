//! Many files at once, without a work tree.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::git::git;

/// Commits files on `main` of a bare repository, on top of what is there.
pub(crate) fn import(bare: &Path, files: impl IntoIterator<Item = (String, String)>) {
    let mut child = git(bare).args(["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = std::io::BufWriter::new(child.stdin.take().unwrap());
    let has_parent = git(bare).args(["rev-parse", "--quiet", "--verify", "main"]).output().unwrap().status.success();
    let from = if has_parent { "from refs/heads/main^0\n" } else { "" };
    write!(input, "commit refs/heads/main\ncommitter Ada <ada@example.org> 1767323045 +0000\ndata 6\nChange\n{from}")
        .unwrap();
    for (path, content) in files {
        write!(input, "M 100644 inline {path}\ndata {}\n{content}\n", content.len()).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}
