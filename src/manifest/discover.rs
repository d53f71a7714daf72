//! Which files of a repository are read.

use std::collections::BTreeSet;

use super::project::Settings;

/// Folders in which nothing of ours is expected.
const SKIPPED_FOLDERS: [&str; 3] = ["node_modules", "vendor", "target"];
/// Says that the folder is a Helm chart, whose `templates/` are no YAML.
const CHART_FILE: &str = "Chart.yaml";

/// Whether a file may declare something. `charts` are the folders of Helm charts.
pub(crate) fn is_read(path: &str, settings: &Settings, charts: &BTreeSet<String>) -> bool {
    has_known_extension(path)
        && !is_in_skipped_folder(path)
        && !is_chart_template(path, charts)
        && settings.include.as_ref().is_none_or(|include| include.is_match(path))
        && !settings.exclude.is_match(path)
}

fn has_known_extension(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn is_in_skipped_folder(path: &str) -> bool {
    let (folders, _) = path.rsplit_once('/').unwrap_or_default();
    !folders.is_empty() && folders.split('/').any(|part| part.starts_with('.') || SKIPPED_FOLDERS.contains(&part))
}

fn is_chart_template(path: &str, charts: &BTreeSet<String>) -> bool {
    !charts.is_empty() && path.match_indices("/templates/").any(|(at, _)| charts.contains(&path[..at]))
        || path.starts_with("templates/") && charts.contains("")
}

/// Whether a path is a folder's or in it; the empty folder is the root.
pub(crate) fn is_under(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folder of a Helm chart, if the path is its description.
pub(crate) fn chart_of(path: &str) -> Option<&str> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    (name == CHART_FILE).then_some(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_may_be_ours_are_read() {
        let charts = BTreeSet::from(["charts/web".to_owned()]);
        let read = ["a.yaml", "a/b.yml", "a/b.JSON", "launchway.yaml", "charts/web/values.yaml", "a/templates/b.yaml"];
        let skipped = [
            "a.txt",
            "yaml",
            ".github/workflows/ci.yaml",
            "node_modules/a/package.json",
            "a/vendor/b.yaml",
            "target/x.json",
            "charts/web/templates/a.yaml",
            "charts/web/templates/deep/a.yaml",
        ];
        for path in read {
            assert!(is_read(path, &Settings::default(), &charts), "{path}");
        }
        for path in skipped {
            assert!(!is_read(path, &Settings::default(), &charts), "{path}");
        }
    }

    #[test]
    fn a_folder_holds_what_is_below_it() {
        for (path, folder, expected) in
            [("a/b", "a", true), ("a", "a", true), ("ab/c", "a", false), ("x", "", true), ("a", "a/b", false)]
        {
            assert_eq!(is_under(path, folder), expected, "{path} in {folder}");
        }
    }
}
