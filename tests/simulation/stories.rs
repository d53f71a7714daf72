//! Plays the scripts of `tests/stories` and compares what they tell with what was recorded beside them.
//!
//! `UPDATE_STORIES=1` records anew; read the difference before it is committed.

use std::fs;
use std::path::{Path, PathBuf};

use launchway::testing::script;
use similar::TextDiff;

#[tokio::test(flavor = "multi_thread")]
async fn every_story_goes_as_recorded() {
    let mut stories = tokio::task::JoinSet::new();
    for path in scripts() {
        stories.spawn(async move { check(&path).await.map_err(|problem| format!("{}: {problem}", path.display())) });
    }
    let told: Vec<Result<(), String>> = stories.join_all().await;
    let problems: Vec<String> = told.into_iter().filter_map(Result::err).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n\n"));
}

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|it| it == "txt")).collect();
    assert!(!scripts.is_empty(), "no stories were found");
    scripts
}

async fn check(path: &Path) -> Result<(), String> {
    let folder = crate::folder();
    let story = fs::read_to_string(path).unwrap();
    let told = script::play(&story, folder.path()).await.map_err(|failure| format!("{failure:#}"))?;
    let record = path.with_extension("out");
    if std::env::var_os("UPDATE_STORIES").is_some() {
        fs::write(&record, told).unwrap();
        return Ok(());
    }
    let recorded = fs::read_to_string(&record).unwrap_or_default();
    if told == recorded {
        return Ok(());
    }
    Err(TextDiff::from_lines(&recorded, &told).unified_diff().header("recorded", "told").to_string())
}
