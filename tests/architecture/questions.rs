//! The page on the architecture names the file where each question begins: there has to be such a file.

use std::fs;
use std::path::Path;

/// The page.
const PAGE: &str = "docs/architecture.md";
/// Its table of questions.
const TABLE: &str = "## Where is it?";
/// The fewest questions that it answers.
const FEWEST: usize = 6;

#[test]
fn every_question_is_answered_with_a_file_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join(PAGE)).unwrap();
    let (_, table) = page.split_once(TABLE).unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let answers: Vec<Vec<&str>> =
        rows.take_while(|line| line.starts_with('|')).map(|row| row.split('`').skip(1).step_by(2).collect()).collect();
    assert!(answers.len() >= FEWEST && answers.iter().all(|files| !files.is_empty()), "{answers:?}");
    let missing: Vec<&str> =
        answers.into_iter().flatten().filter(|file| !root.join("src").join(file).exists()).collect();
    assert!(missing.is_empty(), "{PAGE} names what is not there: {missing:?}");
}
