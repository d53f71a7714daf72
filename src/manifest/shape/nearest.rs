//! "Did you mean": the known word that is nearest to a misspelt one.

/// What is longer is compared by its beginning.
const MAX_LETTERS: usize = 64;
/// Cyrillic and Greek letters, each before the Latin one that it looks like.
const LOOK_ALIKES: &str = "аaвbсcԁdеeһhнhіiјjкkӏlмmоoрpѕsтtуyхxαaβbεeηnιiκkνvοoρpτtυuχx";

/// The nearest of `known`, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within((word.len() / 3).clamp(1, 3), word, known)
}

/// The nearest of `known` that differs in so many letters at most.
pub(crate) fn nearest_within<'a>(limit: usize, word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = as_it_looks(word);
    let near = known.map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, candidate)| candidate)
}

/// A word in Latin lower case, also if its letters only look like Latin ones.
fn as_it_looks(word: &str) -> String {
    let pairs = || LOOK_ALIKES.chars().step_by(2).zip(LOOK_ALIKES.chars().skip(1).step_by(2));
    let latin = |letter: char| pairs().find(|(other, _)| *other == letter).map_or(letter, |(_, latin)| latin);
    word.chars().take(MAX_LETTERS).flat_map(char::to_lowercase).map(latin).collect()
}

/// Letters to insert, delete, replace, or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let letters = |word: &str| word.chars().take(MAX_LETTERS).collect::<Vec<_>>();
    let (a, b) = (letters(a), letters(b));
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &left) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &right) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(left != right)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && left == b[j - 1] && a[i - 1] == right {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["replicas", "selector", "strategy", "triggers", "template"];
        let table = [
            ("replica", Some("replicas")),
            ("repilcas", Some("replicas")),
            ("Strategy", Some("strategy")),
            ("tigger", Some("triggers")),
            ("ѕtrаtеgу", Some("strategy")),
            ("ΤΕΜΡLΑΤΕ", Some("template")),
            ("lifecycle", None),
            ("стратегия", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(nearest(word, known.into_iter()), expected, "{word}");
        }
    }
}
