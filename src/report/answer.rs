//! The answer to a command in a comment on a pull request. What people have written, and what names they gave, stands in code.

use serde_json::json;

use crate::model::comment::CommentCommand;
use crate::model::ids::RepositoryName;
use crate::model::seed::Seed;
use crate::report::markdown::{code, remark};

/// The most characters of what came of a command.
const MOST: usize = 4000;

/// What is hidden at the beginning of the answer: by this it is found again.
pub fn marker(seed: &Seed, repository: &RepositoryName, command: &CommentCommand) -> String {
    remark("answer", seed, &[json!(repository.as_str()), json!(command.comment), json!(command.place)])
}

/// The comment that tells what came of a command.
pub fn answer(command: &CommentCommand, told: &str) -> String {
    let who = command.by.split_once(':').map_or(&*command.by, |(_, login)| login);
    let told: String = told.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).take(MOST).collect();
    // Indented text is code whatever is in it.
    let lines: String = told.lines().map(|line| format!("    {line}\n")).collect();
    format!("{} of {}:\n\n{lines}", code(&command.line), code(who))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    #[test]
    fn an_answer_commands_nobody_and_links_nothing() {
        let command = CommentCommand {
            comment: 12,
            place: 0,
            pull: 7,
            by: "github:ann".to_owned(),
            line: "/launchway retry `x` @all".to_owned(),
            written_at: Timestamp(0),
            answer: None,
        };
        let marker = marker(&Seed::NONE, &"shop".into(), &command);
        assert!(marker.starts_with("launchway/answer "), "{marker}");
        let other = CommentCommand { place: 1, ..command.clone() };
        assert_ne!(super::marker(&Seed::NONE, &"shop".into(), &other), marker);
        let told = answer(&command, "there is no `x`\n/launchway retry web\r```\n@all");
        let expected =
            "``/launchway retry `x` @all`` of `ann`:\n\n    there is no `x`\n    /launchway retry web ```\n    @all\n";
        assert_eq!(told, expected);
        assert!(answer(&command, &"x".repeat(10_000)).len() < 2 * MOST);
    }
}
