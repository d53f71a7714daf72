//! Commands that run beside the processes of pods: the request is upgraded to a conversation of [`Frame`]s.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::codec::Framed;
use tokio_util::sync::CancellationToken;

use super::extract::{Body, Segments};
use super::read::config_key;
use crate::control::commands::Command;
use crate::error::{Failure, Result};
use crate::model::pod::{ObservedPod, PodPhase};
use crate::runtime::exec::{ExecCommand, ExecInput, ExecOutput, ExecSession, Terminal};
use crate::server::frame::{Ending, Frame, FrameCodec, PROTOCOL, WINDOW};
use crate::server::listener::Slot;
use crate::server::problem::{Answer, Problem};
use crate::server::state::{Actor, ServerState};

/// How long nothing is said before the other side is told that this one is there.
const ALIVE: Duration = Duration::from_secs(20);
/// How long the other side may take to hear how a command ended.
const LINGER: Duration = Duration::from_secs(5);

/// A command to run beside the processes of a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// The command, not run by a shell.
    pub command: Vec<String>,
    /// In this pod; one that is ready if absent.
    #[serde(default)]
    pub pod: Option<String>,
    /// In this container; the first if absent.
    #[serde(default)]
    pub container: Option<String>,
    /// Whether it has a standard input.
    #[serde(default)]
    pub stdin: bool,
    /// The terminal that it runs on, if it shall have one.
    #[serde(default)]
    pub terminal: Option<Terminal>,
}

/// Runs a command in a pod of a deployment config.
pub(in crate::server) async fn exec(
    State(state): State<ServerState>,
    Extension(actor): Extension<Actor>,
    slot: Option<Extension<Slot>>,
    upgrade: Option<Extension<OnUpgrade>>,
    headers: HeaderMap,
    Segments((project, stage, name)): Segments<(String, String, String)>,
    Body(request): Body<ExecRequest>,
) -> Answer<Response> {
    let key = config_key((project, stage, name));
    let is_ours = headers.get(header::UPGRADE).is_some_and(|protocol| protocol == PROTOCOL);
    let Some(Extension(upgrade)) = upgrade.filter(|_| is_ours) else { return Ok(upgrade_required()) };
    if request.command.is_empty() {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "there is no command to run"));
    }
    let pods = state.query.replicas(&key).await?;
    let chosen = choose(&pods, request.pod.as_deref())
        .ok_or_else(|| Problem::not_found(format!("no pod of `{key}` runs that could run a command")))?;
    let runtime = state.query.runtime()?;
    let command = ExecCommand { words: request.command, stdin: request.stdin, terminal: request.terminal };
    let record = Command::Exec { config: key, pod: chosen.id.name.clone(), words: command.words.clone() };
    state.act(record, &actor).await?;
    let session = runtime
        .exec(&chosen.id, request.container.as_deref(), &command)
        .await
        .map_err(|failure| Problem::of_pod(&failure))?;
    tokio::spawn(async move {
        match upgrade.await {
            Ok(upgraded) => converse(upgraded, session, &state.stop).await,
            Err(error) => tracing::debug!(%error, "whoever asked for a command has gone"),
        }
        drop(slot);
    });
    let upgraded = [(header::UPGRADE, PROTOCOL), (header::CONNECTION, "upgrade")];
    Ok((StatusCode::SWITCHING_PROTOCOLS, upgraded).into_response())
}

fn upgrade_required() -> Response {
    let problem = Problem::new(StatusCode::UPGRADE_REQUIRED, format!("a command is talked to over `{PROTOCOL}`"));
    let mut response = problem.hint("use `launchway exec`; a proxy in between has to pass upgrades on").into_response();
    response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
    response
}

fn choose<'a>(pods: &'a [ObservedPod], name: Option<&str>) -> Option<&'a ObservedPod> {
    match name {
        Some(name) => pods.iter().find(|pod| pod.id.name.as_str() == name),
        None => pods.iter().find(|pod| matches!(pod.phase, PodPhase::Ready { .. })),
    }
}

type Frames = Framed<TokioIo<Upgraded>, FrameCodec>;

/// Until the command has ended, or the other side has gone, or this server ends. The last two drop the session, which ends the
/// command.
async fn converse(upgraded: Upgraded, session: ExecSession, stop: &CancellationToken) {
    let frames: Frames = Framed::new(TokioIo::new(upgraded), FrameCodec::default());
    let (mut sink, mut stream) = frames.split();
    let (heard, queue) = mpsc::channel(WINDOW);
    let (taken, is_taken) = mpsc::channel(WINDOW);
    let was_told = tokio::select! {
        ending = tell(&mut sink, session.output, is_taken, stop) => ending.is_ok(),
        () = listen(&mut stream, &heard) => false,
        () = feed(queue, &session.input, &taken) => false,
        () = async { stop.cancelled().await; tokio::time::sleep(LINGER).await } => false,
    };
    if was_told {
        // A connection that is closed while something of it is unread is broken off, and the ending with it.
        let rest = async { while let Some(Ok(_)) = stream.next().await {} };
        tokio::time::timeout(LINGER, rest).await.ok();
    }
}

/// Tells the other side what the command says, at last how it ended.
async fn tell(
    sink: &mut SplitSink<Frames, Frame>,
    mut output: mpsc::Receiver<Result<ExecOutput>>,
    mut is_taken: mpsc::Receiver<()>,
    stop: &CancellationToken,
) -> std::io::Result<()> {
    let lost = |failure: Failure| Frame::Ended(Ending::Problem(failure.one_line()));
    loop {
        let frame = tokio::select! {
            Some(()) = is_taken.recv() => Frame::Taken,
            said = output.recv() => match said {
                Some(Ok(ExecOutput::Stdout(bytes))) => Frame::Stdout(bytes),
                Some(Ok(ExecOutput::Stderr(bytes))) => Frame::Stderr(bytes),
                Some(Ok(ExecOutput::Ended(code))) => Frame::Ended(Ending::Code(code)),
                Some(Err(failure)) => lost(failure),
                None => lost(Failure::stalled("nobody knows how the command ended")),
            },
            () = stop.cancelled() => lost(Failure::transient("the daemon ends, and the command with it")),
            () = tokio::time::sleep(ALIVE) => Frame::Alive,
        };
        let is_last = matches!(frame, Frame::Ended(_));
        sink.send(frame).await?;
        if is_last {
            return sink.close().await;
        }
    }
}

/// Hears what the other side says, until it goes, or says more than it may.
async fn listen(stream: &mut SplitStream<Frames>, heard: &mpsc::Sender<ExecInput>) {
    while let Some(Ok(frame)) = stream.next().await {
        let input = match frame {
            Frame::Stdin(bytes) => ExecInput::Stdin(bytes),
            Frame::EndOfInput => ExecInput::EndOfInput,
            Frame::Resize(size) => ExecInput::Resize(size),
            Frame::Stdout(_) | Frame::Stderr(_) | Frame::Ended(_) | Frame::Taken | Frame::Alive => return,
        };
        if heard.try_send(input).is_err() {
            return;
        }
    }
}

/// Passes on to the command what was heard, and says what of it was taken.
async fn feed(mut queue: mpsc::Receiver<ExecInput>, input: &mpsc::Sender<ExecInput>, taken: &mpsc::Sender<()>) {
    while let Some(heard) = queue.recv().await {
        // A command that has ended takes nothing more; how it ended is told elsewhere.
        if input.send(heard).await.is_err() || taken.send(()).await.is_err() {
            break;
        }
    }
    std::future::pending::<()>().await;
}
