//! `launchway exec dc/NAME -- COMMAND`.

use clap::Args;

use super::arguments::Global;
use super::client::Client;
use super::output::{Complaint, Exit, Format, Outcome, Output};
use super::target::{ConfigName, config_path};
use crate::error::Failure;
use crate::runtime::ExecOutput;
use crate::server::api::output::ExecRequest;

/// Run a command beside the processes of a pod
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  launchway exec dc/web -s dev -- env")]
pub(super) struct Arguments {
    /// The deployment config
    #[arg(value_name = "dc/NAME")]
    config: ConfigName,
    /// In this pod [default: one that is ready]
    #[arg(long, value_name = "NAME")]
    pod: Option<String>,
    /// In this container [default: the first]
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// The command, not run by a shell
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) async fn run(arguments: &Arguments, global: &Global, output: &mut Output) -> Outcome {
    let client = Client::to_act(global).await?;
    let config = arguments.config.find(&client, global).await?;
    let Arguments { command, pod, container, .. } = arguments;
    let request = ExecRequest { command: command.clone(), pod: pod.clone(), container: container.clone() };
    let result: ExecOutput = client.post(&format!("{}/exec", config_path(&config)), &request).await?;
    match output.format() {
        Format::Human => output.bytes(result.stdout.as_bytes())?,
        Format::Json | Format::Yaml => output.show(&result, |_| String::new())?,
    }
    if result.code == 0 {
        return Ok(Exit::Good);
    }
    let complaint = format!("`{}` ended with exit code {}", command.join(" "), result.code);
    let said = result.stderr.trim_end().to_owned();
    let failure =
        if said.is_empty() { Failure::stalled(complaint) } else { Failure::stalled(format!("{complaint}: {said}")) };
    Err(Complaint::failed(failure))
}
