//! What is said of the environment of a pull request: on its head, and in the comment that tells what merging it would do.

use std::time::Duration;

use crate::engine::lifecycle::policy::format_duration;
use crate::model::commit_status::{CommitStatus, StatusState};
use crate::model::environment::{Environment, EnvironmentSettings, Presence, Standing};
use crate::model::ids::StageName;
use crate::report::markdown::{code, lines};
use crate::report::status::{PLAN, stage_context};

/// What there is to say of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentReport {
    /// What becomes of it.
    pub environment: Environment,
    /// What the branch says of environments.
    pub settings: EnvironmentSettings,
    /// What its head shows of it.
    pub status: Option<CommitStatus>,
    /// Its services, with where each answers.
    pub services: Vec<(String, Vec<String>)>,
    /// Whether people may command in comments, and so approve what a fork brings.
    pub is_commanded: bool,
    /// What keeps it from being brought up to date.
    pub problem: Option<String>,
}

/// What is written on a head of the statuses of its environment: the plan is told as that of merging it, unless there is none to
/// be carried out.
pub fn statuses(statuses: Vec<CommitStatus>, number: u64) -> Vec<CommitStatus> {
    let context = stage_context(&StageName::of_pull(number));
    let of_stage = |status: CommitStatus| match (status.context == PLAN, status.state) {
        (false, _) => Some(status),
        (true, StatusState::Error | StatusState::Failure) => Some(CommitStatus { context: context.clone(), ..status }),
        (true, _) => None,
    };
    statuses.into_iter().filter_map(of_stage).collect()
}

/// The part of the comment that is about the environment.
pub fn section(report: &EnvironmentReport) -> String {
    let EnvironmentReport { environment, settings, .. } = report;
    let ending = match environment.presence {
        Presence::Ending => " What is there of it ends.",
        Presence::Nothing | Presence::There => "",
    };
    let text = match environment.standing {
        Standing::Wanted => return format!("\n### Its environment\n\n{}", there(report)),
        Standing::Waiting if environment.presence == Presence::Ending => {
            "It comes back once what is there of it has ended.".to_owned()
        }
        Standing::Waiting => format!("It waits: there may be {} at once, and the oldest come first.", settings.max),
        Standing::Unapproved if !report.is_commanded => {
            format!("A fork gets none where nobody may command in comments (`commands`).{ending}")
        }
        Standing::Unapproved => format!(
            "A fork gets one once somebody who may write to the repository comments {}, for just this commit.{ending}",
            code(&format!("/launchway preview {}", environment.head))
        ),
        Standing::Elsewhere => {
            format!("There is none: it is in another repository, from which nothing is read.{ending}")
        }
        Standing::Expired => {
            format!("It is over: nothing was pushed for {}. A push brings it back.{ending}", time(settings.ttl()))
        }
        Standing::Over => format!("It is over.{ending}"),
    };
    format!("\n### Its environment\n\n{text}\n")
}

fn there(report: &EnvironmentReport) -> String {
    let EnvironmentReport { environment, status, services, problem, settings, .. } = report;
    let stage = StageName::of_pull(environment.number);
    let mut text = format!("{}, made after {}: ", code(stage.as_str()), code(settings.stage.as_str()));
    match (problem, status) {
        (Some(problem), _) => text.push_str(&format!("cannot be brought up to date: {}\n", code(problem))),
        // Each step of the way would change the comment.
        (None, Some(status)) if !status.state.is_final() => text.push_str(&format!("{}\n", status.state)),
        (None, Some(status)) => {
            let commit = code(status.commit.short());
            text.push_str(&format!("{} on {commit}, {}\n", status.state, code(&status.description)));
        }
        (None, None) => text.push_str("on its way\n"),
    }
    if !services.is_empty() {
        let places = |all: &[String]| all.iter().map(|place| code(place)).collect::<Vec<_>>().join(", ");
        text.push('\n');
        text.push_str(&lines(services.iter().map(|(name, all)| format!("{}: {}", code(name), places(all)))));
    }
    text
}

/// A time as people say it in a project.
fn time(time: Duration) -> String {
    const DAY: u64 = 24 * 3600;
    match time.as_secs() {
        days if days > 0 && days.is_multiple_of(DAY) => format!("{}d", days / DAY),
        _ => format_duration(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(standing: Standing, presence: Presence) -> EnvironmentReport {
        let (head, reference) = ("1a2b3c4d5e".into(), Some("refs/pull/12/head".to_owned()));
        let environment = Environment {
            number: 12,
            head,
            since: Default::default(),
            reference,
            is_fork: false,
            template: "dev".into(),
            standing,
            presence,
        };
        let settings = EnvironmentSettings { stage: "dev".into(), max: 5, ttl_seconds: 3 * 24 * 3600 };
        EnvironmentReport {
            environment,
            settings,
            status: None,
            services: Vec::new(),
            is_commanded: true,
            problem: None,
        }
    }

    fn status(context: &str, state: StatusState) -> CommitStatus {
        CommitStatus::new("1a2b3c4d5e".into(), context, state, "1 `deploy`")
    }

    #[test]
    fn what_becomes_of_one_is_said() {
        for (standing, presence, expected) in [
            (Standing::Wanted, Presence::There, "`pr-12`, made after `dev`: on its way"),
            (Standing::Waiting, Presence::Nothing, "there may be 5 at once"),
            (Standing::Waiting, Presence::Ending, "comes back once what is there"),
            (Standing::Unapproved, Presence::Nothing, "comments `/launchway preview 1a2b3c4d5e`"),
            (Standing::Unapproved, Presence::Ending, "What is there of it ends."),
            (Standing::Elsewhere, Presence::Nothing, "in another repository"),
            (Standing::Expired, Presence::Nothing, "nothing was pushed for 3d."),
        ] {
            let text = section(&report(standing, presence));
            assert!(text.contains(expected), "{standing:?}: {text}");
        }
    }

    #[test]
    fn one_that_is_there_shows_its_state_and_its_addresses() {
        let there = EnvironmentReport {
            status: Some(status("launchway/pr-12", StatusState::Success)),
            services: vec![("web".to_owned(), vec!["127.0.3.1:80".to_owned(), "127.0.3.1:443".to_owned()])],
            ..report(Standing::Wanted, Presence::There)
        };
        let expected = "\n### Its environment\n\n`pr-12`, made after `dev`: success on `1a2b3c4`, `` 1 `deploy` ``\n\n\
                        - `web`: `127.0.3.1:80`, `127.0.3.1:443`\n";
        assert_eq!(section(&there), expected);
        let late = EnvironmentReport { problem: Some("out of reach".to_owned()), ..there };
        assert!(section(&late).contains("cannot be brought up to date: `out of reach`"));
    }

    #[test]
    fn a_head_shows_the_plan_of_its_environment_only_where_there_is_none() {
        let contexts = |all: Vec<CommitStatus>| -> Vec<String> {
            statuses(all, 12).into_iter().map(|status| format!("{} {}", status.state, status.context)).collect()
        };
        let stage = status("launchway/pr-12", StatusState::Success);
        assert_eq!(contexts(vec![status(PLAN, StatusState::Success), stage]), ["success launchway/pr-12"]);
        assert_eq!(contexts(vec![status(PLAN, StatusState::Error)]), ["error launchway/pr-12"]);
    }
}
