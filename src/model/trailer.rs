//! Trailers of commit messages: `Key: value`, as `git interpret-trailers` reads them.

/// The trailers of a message, keys as they are written. They stand in its last paragraph, and that is not its first.
pub fn trailers(message: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines: Vec<&str> = message.trim_end().lines().map(str::trim_end).collect();
    let start = lines.iter().rposition(|line| line.is_empty()).unwrap_or(lines.len());
    let trailers = lines.into_iter().skip(start).filter_map(|line| line.split_once(':'));
    trailers.map(|(key, value)| (key, value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_stand_in_the_last_paragraph_of_a_message() {
        let told = |message: &str| trailers(message).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        for (message, expected) in [
            ("Go\n\nLaunchway-Code: app@1\n", vec!["Launchway-Code=app@1"]),
            ("Go\r\n\r\nSeen.\r\n\r\nA:web\r\nSigned-off-by: Ann\r\n", vec!["A=web", "Signed-off-by=Ann"]),
            ("A: web", vec![]),
            ("Go\n\nA: web\n\nBut not yet.", vec![]),
            ("Go\n\nA web", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(told(message), expected, "{message}");
        }
    }
}
