//! A page of the documentation as what somebody types who follows it.

use std::fs;
use std::path::Path;

/// A page's commands, in their order.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// What is typed, and what the page shows of the answer.
#[derive(Debug)]
pub(crate) struct Step {
    /// Where it stands in the page.
    pub(crate) line: usize,
    pub(crate) typed: String,
    pub(crate) shown: Vec<String>,
}

impl Page {
    /// Scripts are blocks of `sh`; of a `console`, lines that begin with a prompt are typed.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let (mut steps, mut block) = (Vec::<Step>::new(), None);
        for (line, text) in text.lines().enumerate().map(|(at, text)| (at + 1, text)) {
            let typed = |typed: &str| Step { line, typed: typed.to_owned(), shown: Vec::new() };
            match (block, text.strip_prefix("```"), text.strip_prefix("$ ")) {
                (None, Some(language), _) => {
                    block = Some(language);
                    steps.extend((language == "sh").then(|| typed("")));
                }
                (Some(_), Some(_), _) => block = None,
                (Some("sh"), ..) => steps.last_mut().unwrap().typed += &format!("{text}\n"),
                (Some("console"), _, Some(command)) => steps.push(typed(command)),
                (Some("console"), ..) => steps.last_mut().unwrap().shown.push(text.to_owned()),
                _ => {}
            }
        }
        Self { name: path.file_name().unwrap().to_string_lossy().into_owned(), steps }
    }
}

impl Step {
    /// Without a comment.
    pub(crate) fn first_line(&self) -> &str {
        let line = self.typed.lines().next().unwrap_or_default();
        line.split_once("  #").map_or(line, |(command, _)| command).trim()
    }
}
