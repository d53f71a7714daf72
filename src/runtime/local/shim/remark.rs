//! What a pod tells people about itself while it lives. Whatever it says stands on commits, so it is not said anew with
//! every second. Pure: time is passed in, counted from the shim's start.

use std::time::Duration;

/// How long something is told at first before something else takes its place; twice as long with each that follows.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The longest of these times.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is reported about a pod.
#[derive(Debug, Default)]
pub(super) struct Remark {
    told: String,
    /// Until when it is told whatever else is wrong.
    until: Duration,
    pause: Duration,
    /// Whether something else is to be told in its turn.
    waits: bool,
}

impl Remark {
    /// What is told now, if `wrong` is so now; empty if nothing is wrong, which is told at once.
    pub(super) fn update(&mut self, now: Duration, wrong: String) -> &str {
        let is_news = wrong != self.told;
        let is_due = wrong.is_empty() || now >= self.until;
        self.waits = is_news && !is_due;
        if is_news && is_due {
            self.pause =
                if wrong.is_empty() { Duration::ZERO } else { (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE) };
            (self.told, self.until) = (wrong, now + self.pause);
        }
        &self.told
    }

    /// When something else is to be told.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.waits.then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_with_every_second_is_told_seldom_and_what_is_over_at_once() {
        let mut remark = Remark::default();
        let mut told = |second: u64, wrong: &str| {
            let told = remark.update(Duration::from_secs(second), wrong.to_owned()).to_owned();
            (told, remark.next_due().map(|due| due.as_secs()))
        };
        for (second, wrong, expected, due) in [
            (1, "", "", None),
            (2, "status 500", "status 500", None),
            (3, "status 502", "status 500", Some(7)),
            (4, "status 500", "status 500", None),
            (5, "status 503", "status 500", Some(7)),
            (7, "status 503", "status 503", None),
            (9, "status 500", "status 503", Some(17)),
            (18, "status 500", "status 500", None),
            (37, "status 503", "status 500", Some(38)),
            (38, "", "", None),
            (39, "exited", "exited", None),
            (44, "exited again", "exited again", None),
        ] {
            assert_eq!(told(second, wrong), (expected.to_owned(), due), "second {second}");
        }
    }
}
