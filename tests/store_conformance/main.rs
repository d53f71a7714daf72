//! What every store must do, written against the port alone; each backend runs the whole suite.

#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test, both are how it fails")]

mod concurrency;
mod outbox;
mod reading;
mod retention;
mod samples;
mod versions;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use launchway::clock::{Clock, ManualClock};
use launchway::model::time::Timestamp;
use launchway::simulation::memory_store::MemoryDisk;
use launchway::store::sqlite::{SqliteReader, SqliteStore, restore};
use launchway::store::{ReadStore, Store};

/// One place where records are kept. Opening it again is another process taking it over.
#[async_trait]
trait Backend: Send + Sync {
    async fn open(&self) -> Arc<dyn Store>;
    /// Puts a copy in its place, as `launchway store restore` does.
    fn restore(&self, copy: &Path);
    /// Reads a copy that [`Store::backup`] wrote.
    fn open_copy(&self, copy: &Path) -> Arc<dyn ReadStore>;
}

struct SqliteFile {
    folder: tempfile::TempDir,
}

impl SqliteFile {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
}

#[async_trait]
impl Backend for SqliteFile {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.folder.path().join("launchway.db"), clock()).unwrap())
    }

    fn restore(&self, copy: &Path) {
        restore(copy, &self.folder.path().join("launchway.db")).unwrap();
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn ReadStore> {
        Arc::new(SqliteReader::open(copy).unwrap())
    }
}

#[async_trait]
impl Backend for MemoryDisk {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(MemoryDisk::open(self, clock()))
    }

    fn restore(&self, copy: &Path) {
        MemoryDisk::restore(self, copy, clock().now()).unwrap();
    }

    fn open_copy(&self, copy: &Path) -> Arc<dyn ReadStore> {
        Arc::new(self.copy(copy).unwrap().open(clock()))
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp(samples::NOW)))
}

macro_rules! conformance {
    ([$($backend:ident = $new:expr),+] $facts:tt) => {
        $(conformance! { @on $backend, $new, $facts })+
    };
    (@on $backend:ident, $new:expr, { $($room:ident { $($fact:ident)* })* }) => {
        mod $backend {
            $(mod $room {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $fact() {
                    let backend = $new;
                    crate::$room::$fact(&backend).await;
                })*
            })*
        }
    };
}

conformance! {
    [sqlite = crate::SqliteFile::new(), memory = launchway::simulation::memory_store::MemoryDisk::default()]
    {
        versions {
            a_new_record_has_version_one_and_every_write_adds_one
            a_write_from_an_old_version_is_a_conflict
            a_record_is_removed_only_at_the_version_that_was_read
            a_conflict_undoes_the_whole_transaction
            a_record_that_was_only_read_must_not_have_moved
            an_earlier_process_is_fenced_out
            records_survive_a_restart
            a_copy_that_takes_its_place_begins_another_life
        }
        outbox {
            asking_again_replaces_the_row_under_a_new_id
            done_and_postpone_touch_only_their_own_row
            what_is_longest_due_is_claimed_first
            what_ends_goes_before_what_begins_unless_that_has_waited_for_long
            a_claimed_row_is_nobody_elses_until_it_is_put_off_or_given_back
            the_rows_of_a_run_are_claimed_one_after_the_other_in_each_lane
            what_nobody_takes_goes_when_it_is_old
            waiting_is_no_failure_and_what_waits_is_woken_or_revived
            withdrawing_removes_by_run_and_key
        }
        reading {
            runs_are_listed_newest_first_by_every_filter
            runs_are_paged_without_gaps_or_repeats
            open_slots_are_those_that_somebody_has_or_waits_for
            what_was_delivered_last_may_leave_out_what_a_procedure_has_deployed
            attempts_are_the_runs_of_a_revision_for_a_service
            a_plan_is_read_whole_or_for_one_service
            what_happened_to_services_is_read_at_once
            what_is_said_of_a_revision_is_read_at_once
            events_are_read_in_order_of_one_run_or_all
            applied_content_is_listed_without_records
            an_attempt_that_did_not_complete_leaves_a_config_unsettled
            revisions_are_found_by_prefix_and_come_with_their_plans
            passed_content_holds_statuses_and_deliveries_are_remembered
            what_waits_in_vain_is_found
            a_backup_holds_everything_that_was_committed
        }
        retention {
            retention_spares_what_is_still_needed
            events_go_by_their_age_however_many_came_since
            what_a_head_shows_stays
            versions_that_a_rollback_may_want_stay
            versions_of_what_is_gone_grow_old
            of_young_runs_the_newest_stay
            what_moved_of_a_revision_is_told_since_then
            what_passed_stays_while_it_is_delivered
            of_young_revisions_the_newest_stay
            the_newest_plan_goes_with_its_service
        }
        concurrency {
            a_conflict_in_a_group_leaves_the_others_alone
            every_concurrent_commit_is_counted_once
            one_of_many_rivals_wins
            readers_see_whole_transactions_while_writers_write
        }
    }
}
