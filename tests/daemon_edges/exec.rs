//! Commands in a pod as a hand expects them: every byte, every exit code, a terminal, and nothing left behind.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::access::{STRANGER, me, operators_token};
use super::verbs::{assert_refused, deployed};
use crate::support::daemon::{World, complaint, config, eventually, send};

/// More than all buffers on the way hold together.
const MUCH: usize = 5 << 20;
/// Tells its terminal's size, now and whenever it changes, what is typed line by line, and that it was interrupted.
const ON_A_TERMINAL: &str = "
import os, signal, sys
def size(*_): print('size', os.get_terminal_size().lines, os.get_terminal_size().columns, flush=True)
def interrupted(*_): print('interrupted', flush=True); os._exit(7)
signal.signal(signal.SIGWINCH, size)
signal.signal(signal.SIGINT, interrupted)
print('on', os.environ['TERM'], os.ttyname(0) == os.ttyname(2), flush=True)
size()
for line in sys.stdin: print('said', line.strip(), flush=True)
";

/// `launchway exec` with these arguments, begun.
fn exec(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.launchway();
    command.arg("exec").arg("dc/web").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same to its end, told this.
fn told(mut command: Command, input: Vec<u8>) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that reads no more ends in spite of what it was told.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn random_bytes() -> Vec<u8> {
    let mut bytes = vec![0; MUCH];
    File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes
}

/// The number that a command in a pod prints first: its process.
fn process_of(stdout: &mut ChildStdout) -> i32 {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        line.extend(byte);
    }
    String::from_utf8(line).unwrap().trim().parse().unwrap()
}

fn runs(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn every_byte_arrives_and_the_exit_code_is_the_commands() {
    let world = deployed();
    let bytes = random_bytes();
    let there_and_back = told(exec(&world, &["-i", "--", "cat"]), bytes.clone());
    assert_eq!(there_and_back.status.code(), Some(0), "{}", complaint(&there_and_back));
    assert!(there_and_back.stdout == bytes, "{} of {} bytes", there_and_back.stdout.len(), bytes.len());
    for (script, code, stdout, stderr) in [
        ("echo one; echo two >&2; exit 7", 7, "one\n", "two\n"),
        ("cat; tty >&2; exit 3", 3, "", "not a tty\n"),
        ("kill -TERM $$", 143, "", ""),
        // What it leaves behind is waited for by nobody, whatever it prints.
        ("(timeout 100 yes later) & echo now", 0, "now\n", ""),
    ] {
        let output = world.run(&["exec", "dc/web", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", complaint(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains(stdout), "{script}: {}", complaint(&output));
        assert_eq!(String::from_utf8_lossy(&output.stderr), stderr, "{script}");
    }
    let stopped_reading = told(exec(&world, &["-i", "--", "head", "-c", "3"]), bytes.clone());
    assert_eq!((stopped_reading.status.code(), &stopped_reading.stdout[..]), (Some(0), &bytes[..3]));
    let whole = world.tell(&["exec", "dc/web", "-o", "json", "--", "sh", "-c", "echo one; echo two >&2"]);
    let whole: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole, serde_json::json!({"code": 0, "stdout": "one\n", "stderr": "two\n"}));
}

#[test]
fn what_cannot_run_is_said_and_who_ran_what_is_on_record() {
    let world = deployed();
    assert_refused(&world, &["exec", "dc/web", "--", "no-such-command"], 127, &["command not found"]);
    assert_refused(&world, &["exec", "dc/web", "-c", "other", "--", "true"], 2, &["no container `other`"]);
    let bare = crate::support::daemon::http(
        &world.address(),
        "POST",
        "/api/v1/deployments/shop/default/web/exec",
        &[("content-type", "application/json"), ("x-token", &operators_token(&world))],
        br#"{"command": ["true"]}"#,
    );
    assert!(bare.0 == 426 && bare.1.contains("launchway-exec.v1"), "{bare:?}");
    let no_terminal = told(exec(&world, &["-it", "--", "sh", "-c", "cat; tty"]), b"typed\n".to_vec());
    assert!(complaint(&no_terminal).contains("note: there is no terminal here"), "{}", complaint(&no_terminal));
    assert_eq!(no_terminal.stdout, b"typed\nnot a tty\n");
    let events = world.tell(&["events"]);
    assert!(events.contains(&format!("`no-such-command` was run in web-1-0 by {}", me())), "{events}");
}

#[test]
fn a_pod_is_named_as_for_its_logs() {
    let world = deployed();
    for pod in ["pod/web-1-0", "pods/web-1-0"] {
        let name = world.tell(&["exec", pod, "--", "sh", "-c", "echo $POD_NAME"]);
        assert_eq!(name, "web-1-0\n", "{pod}");
    }
    let refused = |arguments: &[&str], code, words: &str| {
        assert_refused(&world, &[&["exec"], arguments, &["--", "true"]].concat(), code, &[words]);
    };
    refused(&["pod/web-2-0"], 1, "there is no pod `web-2-0`");
    refused(&["pod/web-1-0", "-s", "other"], 1, "no ");
    refused(&["pod/web-1-0", "--pod", "web-1-0"], 2, "`--pod` is for a deployment config");
    refused(&["run/shop/dev/web-1"], 2, "commands run in pods");
}

#[test]
fn over_tcp_it_needs_a_token_that_may_act() {
    let world = deployed();
    let server = format!("http://{}", world.address());
    let mut with = exec(&world, &["-i", "--server", &server, "--", "sh", "-c", "cat; exit 5"]);
    with.env("LAUNCHWAY_TOKEN", operators_token(&world));
    let bytes = random_bytes();
    let output = told(with, bytes.clone());
    assert_eq!(output.status.code(), Some(5), "{}", complaint(&output));
    assert!(output.stdout == bytes);
    let without = told(exec(&world, &["-i", "--server", &server, "--", "cat"]), Vec::new());
    assert_eq!(without.status.code(), Some(3), "{}", complaint(&without));
}

#[test]
fn whoever_goes_away_takes_the_command_along() {
    let world = deployed();
    // One reads nothing of what it is told, one prints without end, one ignores that it is to hang up.
    for script in ["echo $$; exec sleep 1000", "echo $$; exec yes", "trap '' HUP; echo $$; while :; do :; done"] {
        let mut child = exec(&world, &["-i", "--", "sh", "-c", script]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&random_bytes())));
        let process = process_of(child.stdout.as_mut().unwrap());
        assert!(runs(process));
        child.kill().unwrap();
        child.wait().unwrap();
        writer.join().unwrap();
        eventually(&format!("the end of {script}"), || !runs(process));
    }
}

#[test]
fn the_end_of_the_daemon_is_said_and_waits_for_no_command() {
    let world = deployed();
    let mut child = exec(&world, &["--", "sh", "-c", "echo $$; exec sleep 1000"]).spawn().unwrap();
    let process = process_of(child.stdout.as_mut().unwrap());
    world.stop();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(complaint(&output).contains("the daemon ends"), "{}", complaint(&output));
    eventually("the command ends with it", || !runs(process));
}

/// A program on a terminal of its own, of which we have the other side.
struct OnATerminal {
    child: Child,
    terminal: OwnedFd,
    shown: Arc<Mutex<String>>,
}

impl OnATerminal {
    fn begin(world: &World, script: &str) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).unwrap();
        unlockpt(&terminal).unwrap();
        let theirs = ioctl_tiocgptpeer(&terminal, flags).unwrap();
        resize(&terminal, 40, 100);
        // It becomes its terminal's own session, as in a window.
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_launchway"), "exec", "-it", "dc/web", "--"]);
        let launchway = world.launchway();
        let variables = launchway.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.env_clear().envs(variables).env("TERM", "vt220").args(["python3", "-c", script]);
        command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, writer) = (File::from(terminal.try_clone().unwrap()), Arc::clone(&shown));
        std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(count @ 1..) = reader.read(&mut some) {
                writer.lock().unwrap().push_str(&String::from_utf8_lossy(&some[..count]));
            }
        });
        Self { child, terminal, shown }
    }

    fn shows(&self, text: &str) {
        eventually(&format!("`{text}` on the terminal"), || self.shown.lock().unwrap().contains(text));
    }

    fn type_in(&self, keys: &[u8]) {
        File::from(self.terminal.try_clone().unwrap()).write_all(keys).unwrap();
    }

    /// Whether every key reaches the program here as it is.
    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap().local_modes;
        !modes.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }
}

fn resize(terminal: &OwnedFd, rows: u16, columns: u16) {
    tcsetwinsize(terminal, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

#[test]
fn on_a_terminal_it_is_as_if_one_were_there() {
    let world = deployed();
    let mut here = OnATerminal::begin(&world, ON_A_TERMINAL);
    here.shows("on vt220 True\r\nsize 40 100\r\n");
    assert!(here.is_raw());
    here.type_in(b"hello\r");
    // What is typed is shown by the terminal there alone.
    here.shows("hello\r\nsaid hello\r\n");
    assert_eq!(here.shown.lock().unwrap().matches("hello").count(), 2);
    resize(&here.terminal, 50, 120);
    here.shows("size 50 120\r\n");
    here.type_in(b"\x03");
    here.shows("interrupted\r\n");
    assert_eq!(here.child.wait().unwrap().code(), Some(7));
    assert!(!here.is_raw(), "the terminal is as it was");
}

#[test]
#[ignore = "needs root"]
fn another_user_has_a_terminal_of_its_own() {
    let world = World::new(&[]);
    fs::set_permissions(world.git.root(), Permissions::from_mode(0o711)).unwrap();
    let bare = world.git.bare().display().to_string();
    let allow = format!("allow: {{hostImage: true, users: ['{STRANGER}']}}");
    let text = format!("listen: 127.0.0.1:0\nrepositories:\n  - {{name: shop, url: {bare}, branch: main, {allow}}}\n");
    fs::write(world.config(), text).unwrap();
    // Root may have programs that nobody else reaches.
    world.start_as(|command| command.env("PATH", "/usr/bin:/bin"));
    let user = format!("securityContext: {{runAsUser: {STRANGER}}}");
    let container = format!("{{name: main, image: host, command: [sleep, '1000'], {user}}}");
    world.deploy(&[("web.yaml", &config("web", "type: Recreate", &container))], "success");
    let opened = "
import os
print('user', os.getuid(), os.stat(os.ttyname(0)).st_uid, oct(os.fstat(0).st_mode & 0o777), flush=True)
for name in ['/dev/tty', os.ttyname(0)]: open(name, 'w').write('opened ' + name[:8] + '\\n')
";
    let mut here = OnATerminal::begin(&world, &format!("{opened}{ON_A_TERMINAL}"));
    here.shows(&format!("user {STRANGER} {STRANGER} 0o6"));
    here.shows("opened /dev/tty\r\nopened /dev/pts\r\n");
    here.shows("on vt220 True\r\nsize 40 100\r\n");
    here.type_in(b"hello\r");
    here.shows("hello\r\nsaid hello\r\n");
    resize(&here.terminal, 50, 120);
    here.shows("size 50 120\r\n");
    here.type_in(b"\x03");
    here.shows("interrupted\r\n");
    assert_eq!(here.child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_terminal_is_restored_also_where_the_program_here_is_ended() {
    let world = deployed();
    let file = world.git.path("process");
    let script =
        format!("import os\nopen({:?}, 'w').write(str(os.getpid()))\n{ON_A_TERMINAL}", file.display().to_string());
    let mut here = OnATerminal::begin(&world, &script);
    here.shows("size 40 100");
    assert!(here.is_raw());
    let process: i32 = fs::read_to_string(&file).unwrap().parse().unwrap();
    send(i32::try_from(here.child.id()).unwrap(), Signal::TERM);
    assert_eq!(here.child.wait().unwrap().code(), Some(143));
    assert!(!here.is_raw(), "the terminal is as it was");
    eventually("the command ends too", || !runs(process));
}
