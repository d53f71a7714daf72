//! What stands in a file that is no YAML, but means something to another tool.

/// What to do about it.
pub(super) fn hint(text: &str) -> Option<String> {
    let conflict = text.lines().position(|line| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> "));
    if let Some(index) = conflict {
        return Some(format!("line {} holds a conflict marker of a merge: resolve it and commit again", index + 1));
    }
    let template = text.lines().position(|line| line.find("{{").is_some_and(|at| line[at..].contains("}}")))?;
    let line = template + 1;
    Some(format!("line {line} is one of a template: commit what it renders, or name the file under `spec.exclude`"))
}

#[cfg(test)]
mod tests {
    use crate::manifest::yaml::read;

    #[test]
    fn whoever_left_something_of_another_tool_is_told_what_to_do() {
        let table = [
            ("a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> topic\n", "line 2 holds a conflict marker"),
            ("a: 1\nimage: {{ .Values.image }}\n", "line 2 is one of a template"),
            ("{{- if .Values.on }}\na: 1\n{{- end }}\n", "line 1 is one of a template"),
        ];
        for (text, hint) in table {
            let errors = read(text.as_bytes()).errors;
            let told = errors.last().and_then(|error| error.hint.as_deref()).unwrap_or_default();
            assert!(told.starts_with(hint), "{text}: {errors:?}");
        }
    }
}
