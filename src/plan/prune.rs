//! Only what launchway owns is deleted, and never much of it at once without a person.

use crate::model::ids::StageName;
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
    /// Whether it declares no object at all, which is a mistake more often than a wish.
    pub declares_nothing: bool,
    /// Stages that it has no longer, with what goes with each.
    pub stages: Vec<(StageName, Vec<ObjectKey>)>,
    /// Whether it has a stage in which nothing was: the name of one that is gone has changed, or is misspelt.
    pub has_new_stage: bool,
}

impl Prune {
    /// Whether that may go by itself.
    pub fn is_allowed(&self) -> bool {
        let gone = self.gone.len();
        let are_few = gone <= FEW || gone * 2 <= self.owned;
        gone == 0 || !self.declares_nothing && are_few && self.refused_stage().is_none()
    }

    /// A stage that does not go by itself: it would take much with it, or would come back under another name.
    fn refused_stage(&self) -> Option<&(StageName, Vec<ObjectKey>)> {
        self.stages.iter().find(|(_, gone)| gone.len() > FEW || self.has_new_stage)
    }

    /// Why it may not, for people.
    pub fn refusal(&self, commit: &str) -> String {
        let (gone, owned, names) = (self.gone.len(), self.owned, named(&self.gone));
        let what = match self.refused_stage() {
            _ if self.declares_nothing => format!("it declares nothing, which deletes what is owned ({names})"),
            Some((stage, there)) => {
                let what =
                    format!("it has no stage `{stage}` any more, which deletes what is there ({})", named(there));
                match gone - there.len() {
                    0 => what,
                    1 => format!("{what}, beside one object elsewhere"),
                    others => format!("{what}, beside {others} objects elsewhere"),
                }
            }
            None => format!("it deletes {gone} of {owned} objects ({names}), more than half at once"),
        };
        format!("{what}; `launchway sync --allow-prune {commit}` allows it")
    }
}

/// The first of some objects, and how many there are beyond those.
fn named(objects: &[ObjectKey]) -> String {
    let mut names: Vec<String> = objects.iter().take(5).map(ToString::to_string).collect();
    if objects.len() > names.len() {
        names.push(format!("{} more", objects.len() - names.len()));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::object::Kind;

    fn keys(count: usize) -> Vec<ObjectKey> {
        (0..count).map(|number| ObjectKey { kind: Kind::ConfigMap, name: format!("c{number}") }).collect()
    }

    fn prune(gone: usize, owned: usize, declares_nothing: bool) -> Prune {
        Prune { gone: keys(gone), owned, declares_nothing, ..Prune::default() }
    }

    #[test]
    fn a_stage_that_takes_much_with_it_or_changes_its_name_stays() {
        for (gone, has_new_stage, expected) in [(3, false, true), (4, false, false), (1, true, false), (0, true, true)]
        {
            let stages = if gone > 0 { vec![("production".into(), keys(gone))] } else { Vec::new() };
            let prune = Prune { stages, has_new_stage, ..prune(gone, 100, false) };
            assert_eq!(prune.is_allowed(), expected, "{prune:?}");
        }
        for (gone, what) in [
            (1, "(ConfigMap/c0)"),
            (2, "(ConfigMap/c0), beside one object elsewhere"),
            (9, "(ConfigMap/c0), beside 8 objects elsewhere"),
        ] {
            let stages = vec![("production".into(), keys(1))];
            let refused = Prune { stages, has_new_stage: true, ..prune(gone, 20, false) };
            let expected = format!(
                "it has no stage `production` any more, which deletes what is there {what}; \
                 `launchway sync --allow-prune 1a2b3c4` allows it"
            );
            assert_eq!(refused.refusal("1a2b3c4"), expected);
        }
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
