//! What a proposed rollback says of itself: what failed, what comes back, what that means, and what merging does. What users
//! have written stands in code, where it neither links nor calls anybody.

use crate::engine::rollback::evaluate::{Alteration, Evaluation};
use crate::model::ids::CommitId;
use crate::model::plan::{Change, Decision, Plan};
use crate::model::proposal::{Proposal, ProposalState};
use crate::report::markdown::{code, lines};

/// What there is to say of a proposal.
#[derive(Clone, Debug)]
pub struct Said<'a> {
    /// It.
    pub proposal: &'a Proposal,
    /// What going back means, of each of its members.
    pub evaluations: &'a [Evaluation],
    /// The paths that change.
    pub paths: &'a [String],
    /// The revisions that are restored, of each of its members.
    pub commits: &'a [CommitId],
    /// The head that it is made for.
    pub head: &'a CommitId,
    /// What a merge would be planned to do, if that is known.
    pub plan: Option<&'a Plan>,
}

/// The title: one line.
pub fn title(proposal: &Proposal) -> String {
    let part = |member: &crate::model::proposal::Proposed| format!("{} to version {}", member.config.name, member.to);
    let parts: Vec<String> = proposal.members.iter().map(part).collect();
    let stage = proposal.members.first().map(|member| member.config.stage.to_string()).unwrap_or_default();
    format!("Roll back {} in {stage}", parts.join(", "))
}

/// The message of its commit.
pub fn commit_message(proposal: &Proposal, commits: &[CommitId]) -> String {
    let restores = proposal.members.iter().zip(commits);
    let restores = restores.map(|(member, commit)| format!("{} as {} declared it", member.config.name, commit.short()));
    let restores = restores.collect::<Vec<_>>().join(", and ");
    format!("{}\n\nThis restores {restores}.\n", title(proposal))
}

/// The text below the title, in Markdown.
pub fn body(said: &Said<'_>) -> String {
    let mut text = why(said.proposal);
    text.push_str(&format!("\n### What comes back\n\nFor {}:\n", code(said.head.short())));
    for (evaluation, commit) in said.evaluations.iter().zip(said.commits) {
        text.push_str(&format!(
            "- {} in {}: what version {} was, as {} declared it\n",
            code(&evaluation.title),
            code(&evaluation.stage),
            evaluation.to,
            code(commit.short()),
        ));
    }
    text.push_str("\nFiles that change:\n");
    text.push_str(&lines(said.paths.iter().map(|path| code(path))));
    text.push_str("\n### What that means\n");
    said.evaluations.iter().for_each(|evaluation| text.push_str(&evaluated(evaluation)));
    if let Some(plan) = said.plan {
        text.push_str("\n### The plan of merging it now\n\n");
        text.push_str(&planned(plan));
    }
    text.push_str(
        "\nMerging it deploys it; where what serves is that already, nothing new starts. Closing it without merging leaves \
         everything as it is, what failed included.\n",
    );
    text
}

/// Why it is closed, in one paragraph of Markdown; nothing, as long as it is open.
pub fn closing(proposal: &Proposal) -> Option<String> {
    let (commit, what) = match &proposal.state {
        ProposalState::Restored { commit } => (commit, "says already what this brings back"),
        ProposalState::Overtaken { commit } => (commit, "says something else than what failed"),
        _ => return None,
    };
    Some(format!("{} {what}, so that this {} is not needed any more.", code(commit.short()), proposal.what()))
}

fn why(proposal: &Proposal) -> String {
    let mut text = String::new();
    match (&proposal.by, proposal.cause.is_empty()) {
        (Some(by), _) => text.push_str(&format!("{} asks for this rollback.\n", code(by))),
        (None, _) => text.push_str("A deployment failed, and its project wants a rollback to be proposed.\n"),
    }
    if !proposal.notes.is_empty() {
        text.push_str(&format!("\n{}\n", code(&proposal.notes)));
    }
    if !proposal.cause.is_empty() {
        text.push('\n');
        // Indented text is code whatever is in it.
        text.extend(proposal.cause.lines().map(|line| format!("    {line}\n")));
    }
    text
}

fn evaluated(evaluation: &Evaluation) -> String {
    let from = evaluation.from.map_or_else(|| "what Git says".to_owned(), |from| format!("version {from}"));
    let mut text = format!("\n{}, from {from} to what version {} was:\n\n", code(&evaluation.title), evaluation.to);
    let changes = evaluation.changes.iter().map(altered);
    let hooks = evaluation.hooks.iter().map(|hook| format!("runs {}, if it is deployed", code(hook)));
    let warnings = evaluation.warnings.iter().map(|warning| format!("**warning**: {}", code(warning)));
    let all: Vec<String> = warnings.chain(changes).chain(hooks).collect();
    text.push_str(&if all.is_empty() { "- nothing differs\n".to_owned() } else { lines(all.into_iter()) });
    text
}

fn altered(change: &Alteration) -> String {
    let what = format!("{} {}", change.area.as_str(), code(&change.name));
    let value = |value: &serde_json::Value| code(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("{what}: {} becomes {}", value(old), value(new)),
        (None, Some(new)) => format!("{what}: {} is added", value(new)),
        (Some(old), None) => format!("{what}: {} is removed", value(old)),
        (None, None) => what,
    }
}

fn planned(plan: &Plan) -> String {
    let services = plan.stages.iter().flat_map(|stage| stage.services.iter().map(move |service| (stage, service)));
    let changes = services.flat_map(|(stage, service)| service.changes.iter().map(move |change| (stage, change)));
    let told = |change: &Change| {
        let cause = if change.cause.is_empty() { String::new() } else { format!(": {}", code(&change.cause)) };
        format!("{} {}{cause}", change.decision.as_str(), code(&change.title()))
    };
    let matter = changes.filter(|(_, change)| change.decision != Decision::None || !change.cause.is_empty());
    let all: Vec<String> = matter.map(|(stage, change)| format!("{}: {}", stage.stage, told(change))).collect();
    if all.is_empty() { "- nothing to do\n".to_owned() } else { lines(all.into_iter()) }
}
