//! Only what launchway owns is deleted, and never much of it at once without a person.

use crate::model::object::ObjectKey;

/// More than this many objects gone at once, and more than half of all, is refused until a person allows it.
const FEW: usize = 3;

/// Whether so many objects may go by themselves.
pub fn allowed(gone: usize, owned: usize) -> bool {
    gone <= FEW || gone * 2 <= owned
}

/// Why they may not, for people.
pub fn refusal(gone: &[ObjectKey], owned: usize, commit: &str) -> String {
    let mut names: Vec<String> = gone.iter().take(5).map(ToString::to_string).collect();
    if gone.len() > names.len() {
        names.push(format!("{} more", gone.len() - names.len()));
    }
    format!(
        "it deletes {} of {owned} objects ({}), more than half at once; `launchway sync --allow-prune {commit}` allows it",
        gone.len(),
        names.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_and_more_than_three_at_once_is_refused() {
        for (gone, owned, expected) in
            [(0, 0, true), (3, 3, true), (4, 8, true), (4, 7, false), (5, 9, false), (4, 4, false), (500, 1000, true)]
        {
            assert_eq!(allowed(gone, owned), expected, "{gone} of {owned}");
        }
    }
}
