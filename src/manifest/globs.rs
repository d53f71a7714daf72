//! Globs of `spec.include` and `spec.exclude`: `*` stops at a slash, `**` is any folders.

use serde_json::Value;

use super::findings::Findings;
use super::pod_template::items;
use super::problem::{Problem, field_path};
use crate::model::object::Location;

/// Paths that match one of some globs. Matching takes time in proportion to path and glob: no glob has more than ten groups.
#[derive(Debug, Default)]
pub(crate) struct Globs(Vec<Glob>);

/// One of them, and where it is said.
#[derive(Debug, Default)]
struct Glob {
    text: String,
    pointer: String,
    location: Location,
}

impl Globs {
    /// Reads the list at `pointer` of a document. What is no glob is told, and matches nothing.
    pub(crate) fn read(value: &Value, pointer: &str, findings: &mut Findings<'_>) -> Self {
        let mut globs = Vec::new();
        for (index, glob) in items(value, pointer) {
            let Some(text) = glob.as_str() else { continue };
            let pointer = format!("{pointer}/{index}");
            match check(text) {
                Ok(()) => {
                    let location = findings.location(&pointer);
                    globs.push(Glob { text: text.to_owned(), pointer, location });
                }
                Err(problem) => {
                    findings.error(&pointer, "invalid", format!("`{text}` is not a glob: {problem}"));
                }
            }
        }
        Self(globs)
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.0.iter().any(|glob| glob.is_match(path))
    }

    /// Warns of those that match none of the paths of files that declare something.
    pub(crate) fn idle(&self, paths: &[&str]) -> Vec<Problem> {
        self.0.iter().filter(|glob| !paths.iter().any(|path| glob.is_match(path))).map(Glob::idle).collect()
    }
}

impl Glob {
    fn is_match(&self, path: &str) -> bool {
        is_match(&self.text, path)
    }

    fn idle(&self) -> Problem {
        let message = format!("no file that declares something matches `{}`", self.text);
        let mut problem = Problem::error(&self.location, "no-match", message).warning();
        (problem.pointer, problem.field) = (self.pointer.clone(), field_path(&self.pointer));
        problem.hint("paths begin at the root of the repository; `*` stops at a slash, `**` is any folders")
    }
}

/// Whether a path matches a glob that is valid.
pub(crate) fn is_match(glob: &str, path: &str) -> bool {
    fast_glob::glob_match(glob, path)
}

/// Whether a glob is one, as any path is without special characters.
pub(crate) fn is_valid(glob: &str) -> bool {
    check(glob).is_ok()
}

/// Whether a valid glob is more than a path.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '\\'])
}

/// To the library a leading `!` turns a glob around, which would read every file that an `exclude` was to leave out.
fn check(glob: &str) -> Result<(), String> {
    if glob.starts_with('!') {
        return Err("it begins with `!`: `include` says what is read, `exclude` what is not".to_owned());
    }
    fast_glob::validate(glob).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stops_at_a_slash_and_two_do_not() {
        let table = [
            ("deploy/**", "deploy/a/b.yaml", true),
            ("deploy/**", "deploy.yaml", false),
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a/b.yaml", false),
            ("**/*.yaml", "a.yaml", true),
            ("**/old/*", "x/old/a.yaml", true),
            ("**/old/*", "old/a.yaml", true),
            ("**/old/*", "old/b/a.yaml", false),
            ("{dev,production}/[ab]?.yaml", "dev/a1.yaml", true),
            ("{dev,production}/[!ab]?.yaml", "dev/a1.yaml", false),
        ];
        for (glob, path, matches) in table {
            assert_eq!(check(glob), Ok(()));
            assert_eq!(Glob { text: glob.to_owned(), ..Glob::default() }.is_match(path), matches, "{glob} {path}");
        }
    }

    #[test]
    fn what_cannot_match_as_it_is_meant_is_told() {
        for glob in ["a[", "{a", "!deploy/**", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"] {
            assert!(check(glob).is_err(), "{glob}");
        }
    }
}
