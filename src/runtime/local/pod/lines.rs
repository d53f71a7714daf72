//! What is shown of kept output: the chosen lines, with what stands before them.

use std::path::PathBuf;

use super::entry::Entry;
use super::paths::PodDir;
use super::record::PodRecord;
use super::status::PodStatus;
use crate::error::{Failure, Result};
use crate::runtime::logs::LogQuery;

/// The kept output of a container.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The container's name, where it is to stand before each line.
    pub(crate) name: Option<String>,
    /// The file that is being written, or was.
    pub(crate) path: PathBuf,
    /// How many files there are at most.
    pub(crate) most: u32,
    /// Whether it holds entries; shims of an earlier version have written what was printed as it was.
    pub(crate) has_entries: bool,
    /// Only what it printed after it was started so often.
    pub(crate) run: Option<u32>,
}

impl Kept {
    /// The output of a pod's containers that is asked for.
    pub(crate) fn asked_for(
        dir: &PodDir,
        record: &PodRecord,
        status: Option<&PodStatus>,
        query: &LogQuery,
    ) -> Result<Vec<Self>> {
        let names: Vec<&str> = match &query.container {
            Some(name) => vec![record.existing(name)?],
            None => record.containers().map(|container| container.name.as_str()).collect(),
        };
        let is_named = names.len() > 1;
        let kept = names.iter().map(|name| Self::find(dir, record, name, is_named));
        if !query.previous {
            return Ok(kept.collect());
        }
        let restarts = |name: &str| status.and_then(|status| status.restarts_of(name)).unwrap_or_default();
        let earlier: Vec<Self> = kept.zip(&names).filter_map(|(kept, name)| kept.before(restarts(name))).collect();
        match earlier.is_empty() {
            true => Err(Failure::stalled(format!("no container of pod `{}` was started again", record.pod.id))
                .hint("without `--previous` you see what it prints now")),
            false => Ok(earlier),
        }
    }

    /// The kept output of a container of a pod.
    fn find(dir: &PodDir, record: &PodRecord, container: &str, is_named: bool) -> Self {
        let plain = dir.plain_log(container);
        let has_entries = !plain.exists();
        let path = if has_entries { dir.log(container) } else { plain };
        let name = is_named.then(|| container.to_owned());
        Self { name, path, most: record.logs.max_files, has_entries, run: None }
    }

    /// What of it was printed before the last of so many restarts.
    fn before(self, restarts: u32) -> Option<Self> {
        let run = restarts.checked_sub(1)?;
        self.has_entries.then_some(Self { run: Some(run), ..self })
    }
}

/// Makes lines of output out of what is kept of them.
#[derive(Debug)]
pub(super) struct Lines {
    kept: Kept,
    query: LogQuery,
    /// So many lines are left out yet.
    skip: u64,
    /// Whether the line that has begun is shown.
    within: Option<bool>,
    /// How many lines were begun, those that were left out included.
    begun: u64,
}

impl Lines {
    /// Shows all that is asked for, but for the first `skip` lines of it.
    pub(super) fn new(kept: &Kept, query: &LogQuery, skip: u64) -> Self {
        Self { kept: kept.clone(), query: query.clone(), skip, within: None, begun: 0 }
    }

    /// How many lines were chosen so far.
    pub(super) fn count(&self) -> u64 {
        self.begun
    }

    /// Takes a line of what is kept.
    pub(super) fn take(&mut self, raw: &[u8], shown: &mut Vec<u8>) {
        let entry = match self.kept.has_entries {
            true => Entry::parse(raw),
            false => Some(plain(raw)),
        };
        // What was written in part, because the disk was full.
        let Some(entry) = entry else { return };
        let is_shown = match self.within {
            Some(is_shown) => is_shown,
            None => self.begin(&entry, shown),
        };
        self.within = (!entry.is_end).then_some(is_shown);
        if is_shown {
            shown.extend_from_slice(entry.text);
            if entry.is_end {
                shown.push(b'\n');
            }
        }
    }

    /// Begins a line; whether it is shown.
    fn begin(&mut self, entry: &Entry<'_>, shown: &mut Vec<u8>) -> bool {
        let is_later = self.query.since.is_none_or(|since| entry.time().is_none_or(|at| at >= since));
        if !is_later || self.kept.run.is_some_and(|run| run != entry.run) {
            return false;
        }
        self.begun += 1;
        if self.begun <= self.skip {
            return false;
        }
        let time = self.query.timestamps.then_some(entry.at).filter(|at| !at.is_empty());
        for word in self.kept.name.as_deref().into_iter().chain(time) {
            shown.extend_from_slice(word.as_bytes());
            shown.push(b' ');
        }
        true
    }
}

/// Nobody knows when it was printed.
fn plain(raw: &[u8]) -> Entry<'_> {
    match raw.strip_suffix(b"\n") {
        Some(text) => Entry { at: "", run: 0, is_end: true, text },
        None => Entry { at: "", run: 0, is_end: false, text: raw },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    const KEPT: &str = "\
2025-11-24T16:00:00.000Z stdout F one
2025-11-24T16:00:01.000Z stdout P tw
2025-11-24T16:00:02.000Z stdout F o
torn
2025-11-24T16:00:03.000Z stdout F:1 three
";

    fn shown(kept: &Kept, query: &LogQuery, skip: u64) -> String {
        let (mut lines, mut shown) = (Lines::new(kept, query, skip), Vec::new());
        KEPT.as_bytes().split_inclusive(|byte| *byte == b'\n').for_each(|raw| lines.take(raw, &mut shown));
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn the_chosen_lines_are_shown_as_they_were_printed() {
        let kept = Kept { name: None, path: PathBuf::new(), most: 1, has_entries: true, run: None };
        let all = LogQuery::default();
        assert_eq!(shown(&kept, &all, 0), "one\ntwo\nthree\n");
        assert_eq!(shown(&kept, &all, 2), "three\n");
        assert_eq!(shown(&Kept { run: Some(0), ..kept.clone() }, &all, 0), "one\ntwo\n");
        let named = Kept { name: Some("web".into()), ..kept.clone() };
        let timed = LogQuery { timestamps: true, ..all.clone() };
        let expected = "web 2025-11-24T16:00:01.000Z two\nweb 2025-11-24T16:00:03.000Z three\n";
        assert_eq!(shown(&named, &timed, 1), expected);
        let since = Some(Timestamp(1_764_000_000_500));
        assert_eq!(shown(&kept, &LogQuery { since, ..all }, 0), "two\nthree\n");
        let earlier = Kept { has_entries: false, ..kept };
        assert_eq!(shown(&earlier, &timed, 0), KEPT, "of an earlier version as it is");
    }
}
