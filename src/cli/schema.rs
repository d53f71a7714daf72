//! `launchway schema KIND`.

use clap::Args;

use super::output::{Complaint, Exit, Format, Outcome, Output};
use crate::error::Failure;
use crate::manifest;

/// Print the JSON Schema of a kind of file, for editors
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway schema project > launchway.schema.json")]
pub(super) struct Arguments {
    /// project, shipyard, task, deployment, deploymentconfig, replicationcontroller, imagestream or template
    kind: String,
}

pub(super) fn run(arguments: &Arguments, output: &mut Output) -> Outcome {
    let schema = manifest::schema(&arguments.kind).ok_or_else(|| {
        let failure = Failure::stalled(format!("there is no schema of `{}`", arguments.kind));
        Complaint::usage(failure.hint(
            "kinds with a schema: project, shipyard, task, deployment, deploymentconfig, \
                 replicationcontroller, imagestream, template",
        ))
    })?;
    match output.format() {
        Format::Human | Format::Name | Format::Json => output.line(format!("{schema:#}"))?,
        Format::Yaml => output.show(&schema, |_| String::new())?,
    }
    Ok(Exit::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kind_is_wrong_use() {
        let mut output = Output::plain(Format::Human, std::io::sink());
        for (kind, exit) in [("Project", Some(Exit::Good)), ("task", Some(Exit::Good)), ("pod", None)] {
            assert_eq!(run(&Arguments { kind: kind.into() }, &mut output).ok(), exit, "{kind}");
        }
    }
}
