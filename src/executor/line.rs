//! Who waits for the same, first come, first served.

use std::collections::{BTreeSet, VecDeque};

/// Those that wait, in the order in which they came, each once.
#[derive(Debug)]
pub(super) struct Line<T> {
    order: VecDeque<T>,
    members: BTreeSet<T>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), members: BTreeSet::new() }
    }
}

impl<T: Ord + Clone> Line<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn extend(&mut self, those: impl IntoIterator<Item = T>) {
        for one in those {
            if self.members.insert(one.clone()) {
                self.order.push_back(one);
            }
        }
    }

    /// Those that were taken wait again, before all that came since.
    pub(super) fn put_back(&mut self, those: impl DoubleEndedIterator<Item = T>) {
        for one in those.rev() {
            if self.members.insert(one.clone()) {
                self.order.push_front(one);
            }
        }
    }

    /// The first ones, at most so many.
    pub(super) fn take(&mut self, most: usize) -> Vec<T> {
        let first: Vec<T> = self.order.drain(..most.min(self.order.len())).collect();
        first.iter().for_each(|one| _ = self.members.remove(one));
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_is_first_however_often_others_come() {
        let mut line = Line::default();
        line.extend(["web", "api", "web"]);
        assert_eq!(line.take(1), ["web"]);
        line.extend(["web", "api"]);
        assert_eq!((line.len(), line.take(9)), (2, vec!["api", "web"]));
        assert!(line.is_empty());
        line.extend(["late", "web"]);
        line.put_back(["api", "web"].into_iter());
        assert_eq!(line.take(9), ["api", "late", "web"], "who has come again since waits there");
    }
}
