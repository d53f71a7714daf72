//! How large things may get: a file tells one thing, a function fits on a screen.

use crate::sources::ALL;

/// Lines of production code in a file.
const FILE: usize = 500;
/// Lines of a function, from its signature to its end.
const FUNCTION: usize = 60;

/// A function and its length in lines, from its signature to its end.
pub(crate) struct Function {
    name: String,
    lines: usize,
}

#[test]
fn files_tell_one_thing() {
    let long = ALL.iter().filter(|source| source.lines > FILE);
    let long: Vec<(&str, usize)> = long.map(|source| (source.file.as_str(), source.lines)).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn functions_fit_on_a_screen() {
    let functions = ALL.iter().flat_map(|source| source.functions.iter().map(|function| (&*source.file, function)));
    let long = functions.filter(|(_, function)| function.lines > FUNCTION);
    let long: Vec<_> = long.map(|(file, function)| (file, &*function.name, function.lines)).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// The production lines of a file: those that stand before its tests, or after them.
pub(crate) fn production(text: &str) -> Vec<&str> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let is_block = lines.next().is_some_and(|next| next.ends_with('{'));
            // Formatted code ends an item with a brace in the column that it began in.
            is_block.then(|| lines.by_ref().find(|line| *line == "}"));
        } else {
            found.push(line);
        }
    }
    found
}

/// The functions among formatted lines, each from its signature to the brace in the column that it began in.
pub(crate) fn functions(lines: &[&str]) -> Vec<Function> {
    let length = |first: usize, indent: usize| {
        let end = format!("{}}}", " ".repeat(indent));
        let ends = |line: &&str| **line == end || (line.ends_with('}') && line.trim_start().contains("fn "));
        lines[first..].iter().position(ends).map_or(1, |last| last + 1)
    };
    let function = |(first, line): (usize, &&str)| {
        let indent = line.len() - line.trim_start().len();
        let name = function_name(line.trim_start())?;
        Some(Function { name: name.to_owned(), lines: length(first, indent) })
    };
    lines.iter().enumerate().filter_map(function).collect()
}

/// The name of the function whose signature begins on a line.
fn function_name(line: &str) -> Option<&str> {
    let before = line.split("fn ").next()?;
    let words = ["", "pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern"];
    let is_signature = line.contains("fn ") && before.split_whitespace().all(|word| words.contains(&word));
    let name = line.split("fn ").nth(1).filter(|_| is_signature)?;
    // A signature without a body belongs to a trait.
    (!line.ends_with(';')).then(|| name.split(['(', '<']).next().unwrap_or(name))
}

#[test]
fn functions_are_measured_from_signature_to_end() {
    let text = "pub fn one() {}\n\nimpl A {\n    async fn two(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n}\n";
    let text = format!("{text}#[cfg(test)]\nmod tests {{\n    fn three() {{}}\n}}\n");
    let lines = production(&text);
    let measured = functions(&lines);
    let measured: Vec<_> = measured.iter().map(|function| (function.name.as_str(), function.lines)).collect();
    assert_eq!((lines.len(), measured), (9, vec![("one", 1), ("two", 5)]));
}
