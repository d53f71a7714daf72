//! Only what launchway owns is deleted, and never much of it at once without a person.

use crate::model::object::ObjectKey;

/// More than this many objects gone at once, and more than half of all, is refused until a person allows it.
const FEW: usize = 3;

/// What a revision would delete.
#[derive(Clone, Debug, Default)]
pub struct Prune {
    /// What it declares no longer.
    pub gone: Vec<ObjectKey>,
    /// How many objects are owned, those included.
    pub owned: usize,
    /// Whether it declares any object at all: one that declares none is a mistake more often than a wish.
    pub declares_nothing: bool,
}

impl Prune {
    /// Whether that may go by itself.
    pub fn is_allowed(&self) -> bool {
        let gone = self.gone.len();
        gone == 0 || !self.declares_nothing && (gone <= FEW || gone * 2 <= self.owned)
    }

    /// Why it may not, for people.
    pub fn refusal(&self, commit: &str) -> String {
        let mut names: Vec<String> = self.gone.iter().take(5).map(ToString::to_string).collect();
        if self.gone.len() > names.len() {
            names.push(format!("{} more", self.gone.len() - names.len()));
        }
        let (gone, owned, names) = (self.gone.len(), self.owned, names.join(", "));
        let what = match self.declares_nothing {
            true => format!("it declares nothing, which deletes what is owned ({names})"),
            false => format!("it deletes {gone} of {owned} objects ({names}), more than half at once"),
        };
        format!("{what}; `launchway sync --allow-prune {commit}` allows it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Kind;

    fn prune(gone: usize, owned: usize, declares_nothing: bool) -> Prune {
        let key = |number| ObjectKey { kind: Kind::ConfigMap, name: format!("c{number}") };
        Prune { gone: (0..gone).map(key).collect(), owned, declares_nothing }
    }

    #[test]
    fn more_than_half_and_more_than_three_at_once_is_refused() {
        for (gone, owned, expected) in
            [(0, 0, true), (3, 3, true), (4, 8, true), (4, 7, false), (5, 9, false), (4, 4, false), (500, 1000, true)]
        {
            assert_eq!(prune(gone, owned, false).is_allowed(), expected, "{gone} of {owned}");
        }
    }

    #[test]
    fn a_revision_that_declares_nothing_deletes_nothing() {
        for (gone, owned, expected) in [(0, 0, true), (0, 3, true), (1, 1, false), (1, 100, false), (4, 4, false)] {
            assert_eq!(prune(gone, owned, true).is_allowed(), expected, "{gone} of {owned}");
        }
        let refusal = prune(1, 1, true).refusal("1a2b3c4");
        assert_eq!(
            refusal,
            "it declares nothing, which deletes what is owned (ConfigMap/c0); \
             `launchway sync --allow-prune 1a2b3c4` allows it"
        );
    }
}
