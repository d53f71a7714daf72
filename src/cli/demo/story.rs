//! The story: chapters, commands, and claims with what proves them.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cli::output::{Complaint, Format, Outcome, Output, faint, heading, mark};
use crate::error::Failure;

/// How long to pause before asking again whether something has become true.
const PERIOD: Duration = Duration::from_millis(50);

/// The evidence for a claim, or what was seen instead.
pub(super) type Observed<T = String> = Result<T, String>;

/// Looks until it sees what it wants, or patience ends; then gives what was seen last.
pub(super) async fn eventually<T>(patience: Duration, mut observe: impl AsyncFnMut() -> Observed<T>) -> Observed<T> {
    let started = Instant::now();
    loop {
        match observe().await {
            Ok(seen) => return Ok(seen),
            Err(instead) if started.elapsed() > patience => {
                return Err(format!("{instead}, after {} s", patience.as_secs()));
            }
            Err(_) => tokio::time::sleep(PERIOD).await,
        }
    }
}

/// `evidence` if `holds`, else `instead`.
pub(super) fn check(holds: bool, evidence: impl Into<String>, instead: impl Into<String>) -> Observed {
    if holds { Ok(evidence.into()) } else { Err(instead.into()) }
}

/// A claim and whether it was seen.
#[derive(Debug, Serialize)]
struct Claim {
    chapter: String,
    claim: String,
    seen: bool,
    evidence: String,
}

/// Tells the story as it happens; as JSON, all claims at the end.
#[derive(Debug)]
pub(super) struct Story<'a> {
    output: &'a mut Output,
    started: Instant,
    chapter: String,
    claims: Vec<Claim>,
}

impl<'a> Story<'a> {
    pub(super) fn new(output: &'a mut Output) -> Self {
        Self { output, started: Instant::now(), chapter: String::new(), claims: Vec::new() }
    }

    /// Begins a chapter.
    pub(super) fn chapter(&mut self, title: &str) -> Outcome<()> {
        title.clone_into(&mut self.chapter);
        self.say("")?;
        self.say(heading(title))
    }

    /// Prints a line, for people only.
    pub(super) fn say(&mut self, text: impl std::fmt::Display) -> Outcome<()> {
        match self.output.format() {
            Format::Human | Format::Name => self.output.line(text),
            Format::Json | Format::Yaml => Ok(()),
        }
    }

    /// Shows what is typed, and what it prints.
    pub(super) fn command(&mut self, command: &str, printed: &str) -> Outcome<()> {
        self.say(format!("  $ {command}"))?;
        for line in printed.trim_end().lines() {
            self.say(format!("  {line}").trim_end())?;
        }
        Ok(())
    }

    /// Makes a claim and shows what proves it.
    ///
    /// # Errors
    /// If it was not seen: the story ends here.
    pub(super) fn claim(&mut self, claim: &str, observed: Observed) -> Outcome<()> {
        let seen = observed.is_ok();
        let evidence = observed.unwrap_or_else(|instead| instead);
        let introduction = if seen { "" } else { "seen instead: " };
        self.say(format!("  {} {claim}", mark(seen)))?;
        self.say(format!("    {}", faint(&format!("{introduction}{evidence}"))))?;
        let chapter = self.chapter.clone();
        let failure = format!("not seen: {claim}");
        self.claims.push(Claim { chapter, claim: claim.to_owned(), seen, evidence });
        if seen { Ok(()) } else { Err(Complaint::failed(Failure::stalled(failure))) }
    }

    /// The last line, or the whole of it for scripts.
    pub(super) fn finish(&mut self) -> Outcome<()> {
        let seen = self.claims.iter().filter(|claim| claim.seen).count();
        let (all, took) = (self.claims.len(), self.started.elapsed().as_secs());
        match self.output.format() {
            Format::Human | Format::Name => {
                self.output.line(format!("\n{seen} of {all} claims were seen, in {took} seconds"))
            }
            Format::Json | Format::Yaml => {
                self.output.show(&serde_json::json!({"claims": self.claims}), |_| String::new())
            }
        }
    }
}
