//! What a run-once pod has written of how it went. Its shim reads it once nothing of the pod runs any more, and keeps it beside
//! the status, which says that it has ended only after that: whoever hears of the end finds it, also after the daemon, the
//! shim or the machine has died in between.

use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::mask::Mask;
use super::paths::PodDir;
use super::record::PodRecord;
use crate::error::{Class, Context, Failure, Result};
use crate::model::data::{MOST_DATA, MOST_DEPTH, depth};
use crate::model::pod::PodResult;
use crate::runtime::local::host::files::{self, Durability};
use crate::runtime::local::host::format;

/// Names the file to its processes.
pub(crate) const VARIABLE: &str = "LAUNCHWAY_RESULT";
/// The version of the file that this program writes and reads.
const VERSION: u32 = format::FIRST;
/// How often what is kept may be longer than what was written: where a number or a key is masked, quotes are added.
const ROOM: u64 = 8;

/// `result.json`.
#[derive(Serialize, Deserialize)]
struct Kept {
    v: u32,
    result: PodResult,
}

/// Keeps what a pod has written of which nothing runs any more; nothing, if it was not to or has not.
pub(crate) fn keep(record: &PodRecord, dir: &PodDir, mask: &Mask) -> Result<()> {
    if !record.pod.tells_result {
        return Ok(());
    }
    let Some(result) = read(&dir.own_result(), mask) else { return Ok(()) };
    let wrong = || format!("cannot write `{}`", dir.result().display());
    let content = serde_json::to_vec(&Kept { v: VERSION, result }).or_stalled(wrong)?;
    files::write_whole(&dir.result(), dir.path(), &content, Durability::Durable).or_transient(wrong)
}

/// What was kept of a pod that has ended. What nobody will ever be able to read is told as such: its run waits for it.
pub(crate) fn kept(dir: &PodDir) -> Result<Option<PodResult>> {
    let wrong = || format!("cannot read `{}`", dir.result().display());
    let kept = files::read_bounded(&dir.result(), MOST_DATA as u64 * ROOM).or_transient(wrong).and_then(|content| {
        content.map(|content| format::parse::<Kept>(&content, VERSION)).transpose().or_stalled(wrong)
    });
    let lost = |failure: Failure| PodResult::Unusable(format!("is lost: {}", failure.one_line()));
    match kept {
        Err(failure) if failure.class() == Class::Stalled => Ok(Some(lost(failure))),
        kept => Ok(kept?.map(|kept| kept.result)),
    }
}

/// What stands in the file of a pod; nothing, if there is none.
fn read(path: &Path, mask: &Mask) -> Option<PodResult> {
    let content = match bounded(path) {
        Ok(content) => content?,
        Err(wrong) => return Some(PodResult::Unusable(wrong)),
    };
    if content.trim_ascii().is_empty() {
        return Some(PodResult::Unusable("is empty: write a JSON object".to_owned()));
    }
    Some(match serde_json::from_slice::<Value>(&content) {
        Err(error) => PodResult::Unusable(format!("is no JSON: {error}")),
        Ok(written) if depth(&written) > MOST_DEPTH => {
            PodResult::Unusable(format!("is nested more than {MOST_DEPTH} levels deep: make it flatter"))
        }
        Ok(written) => PodResult::Written(masked(written, mask)),
    })
}

/// The bytes of a file that its pod has made, which may have put anything in its place.
fn bounded(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    // A pipe without a writer is not waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match open(path, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err("is a link: write a file in its place".to_owned()),
        file => file.map_err(|error| unreadable(error.into()))?,
    };
    let found = fstat(&file).map_err(|error| unreadable(error.into()))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err("is no file".to_owned());
    }
    let (most, mut content) = (MOST_DATA as u64, Vec::new());
    std::fs::File::from(file).take(most + 1).read_to_end(&mut content).map_err(unreadable)?;
    match content.len() > MOST_DATA {
        true => Err(format!("has more than {most} bytes: leave logs to its output, and say what came of it")),
        false => Ok(Some(content)),
    }
}

/// The same without the values of Secrets: in texts as in what a pod prints, and of numbers those that show one.
fn masked(value: Value, mask: &Mask) -> Value {
    match value {
        Value::String(text) => Value::String(mask.text(&text)),
        Value::Number(number) => {
            let (shown, clean) = (number.to_string(), mask.text(&number.to_string()));
            if shown == clean { Value::Number(number) } else { Value::String(clean) }
        }
        Value::Array(items) => Value::Array(items.into_iter().map(|item| masked(item, mask)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (mask.text(&key), masked(value, mask))).collect())
        }
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    /// What is read of a file with this content.
    fn written(content: impl AsRef<[u8]>) -> PodResult {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, content).unwrap();
        read(&path, &Mask::new([b"hunter2!\"x".to_vec(), b"123456789012".to_vec()])).unwrap()
    }

    #[test]
    fn json_is_read_without_secrets_wherever_they_stand() {
        let content =
            br#" {"message": "used hunter2!\"x", "hunter2!\"x": [123456789012, 1.5, "\u0068unter2!\"x", null]} "#;
        let expected = json!({"message": "used ***", "***": ["***", 1.5, "***", null]});
        assert_eq!(written(content), PodResult::Written(expected));
        assert_eq!(written("[true]"), PodResult::Written(json!([true])), "what it means is not decided here");
    }

    #[test]
    fn what_is_no_json_too_large_or_too_deep_says_so() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let large = format!("\"{}\"", "x".repeat(MOST_DATA));
        for (content, expected) in [
            (String::new(), "is empty"),
            (" \n".to_owned(), "is empty"),
            ("{\"result\": \"pass\"".to_owned(), "is no JSON: EOF while parsing an object at line 1 column 17"),
            ("{} {}".to_owned(), "is no JSON: trailing characters at line 1 column 4"),
            (deep(MOST_DEPTH + 1), "is nested more than 32 levels deep"),
            (deep(10_000), "is no JSON: recursion limit exceeded"),
            (large, "has more than 65536 bytes"),
        ] {
            let PodResult::Unusable(wrong) = written(&content) else { unreachable!("{content}") };
            assert!(wrong.starts_with(expected), "{wrong}");
        }
        assert!(matches!(written(deep(MOST_DEPTH)), PodResult::Written(_)));
        assert!(matches!(written([b'"', 0xff, b'"']), PodResult::Unusable(_)));
    }

    #[test]
    fn nothing_but_a_file_of_its_own_is_read_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        assert_eq!(read(&path, &Mask::default()), None);
        let other = folder.path().join("other");
        fs::write(&other, "{}").unwrap();
        symlink(&other, &path).unwrap();
        assert_eq!(
            read(&path, &Mask::default()),
            Some(PodResult::Unusable("is a link: write a file in its place".to_owned()))
        );
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(read(&path, &Mask::default()), Some(PodResult::Unusable("is no file".to_owned())));
        fs::remove_dir(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(read(&path, &Mask::default()), Some(PodResult::Unusable("is no file".to_owned())));
    }

    #[test]
    fn what_was_kept_and_is_damaged_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let dir = PodDir::new(folder.path());
        assert_eq!(kept(&dir).unwrap(), None);
        let result = PodResult::Written(json!({"result": "pass"}));
        fs::write(dir.result(), serde_json::to_vec(&Kept { v: VERSION, result: result.clone() }).unwrap()).unwrap();
        assert_eq!(kept(&dir).unwrap(), Some(result));
        for damaged in ["{\"v\": 1, \"result\": ", "{\"v\": 2}"] {
            fs::write(dir.result(), damaged).unwrap();
            let PodResult::Unusable(wrong) = kept(&dir).unwrap().unwrap() else { unreachable!("{damaged}") };
            assert!(wrong.starts_with("is lost: "), "{wrong}");
        }
    }
}
