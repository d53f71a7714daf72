use super::*;

fn read(text: &str) -> Vec<Line> {
    Script::read("story.txt", text).map(|script| script.lines).unwrap_or_default()
}

#[test]
fn a_line_is_a_command_with_its_place_and_without_its_comment() {
    let lines = read("# begins\n\n  do test result=warning test.load=12 by=k6 message=\"too slow\" # ends\n");
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((line.number, line.column), (3, 3));
    assert_eq!(line.text, "do test result=warning test.load=12 by=k6 message=\"too slow\"");
    let data = json!({"result": "warning", "test": {"load": 12}, "message": "too slow"});
    let answer = ExecutorAnswer { by: "k6".into(), data };
    let task = TaskName { place: None, task: "test".into() };
    assert_eq!(line.command, Command::Task { task, phases: &[Phase::Started, Phase::Finished], answer });
}

#[test]
fn every_command_is_read_as_it_is_told() {
    let script = "\
trigger dev.delivery cart labels.build=\"17\"
send problem.open cart stage=dev
start dev/cart/test
report test message=half
finish test
do test
answer * result=fail
ignore test
approve dev/cart seen by ada
reject dev/cart
pause dev/cart
resume dev/cart
abort dev/cart
rerun dev/cart delivery from-start
measure response-time 250
pods cart fails 3
pass 1h30m
";
    let verbs: Vec<String> =
        read(script).iter().filter_map(|line| Some(line.text.split(' ').next()?.to_owned())).collect();
    let answer: Vec<&str> = COMMANDS.iter().filter_map(|(usage, _)| usage.split(' ').next()).collect();
    assert_eq!(verbs, answer);
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_to_do() {
    for (line, expected) in [
        ("dance", "1:1: error: `dance` is no command (use trigger, "),
        (
            "  trigger delivery cart",
            "1:11: error: `delivery` names no sequence of a stage (write it as `dev.delivery`)",
        ),
        ("trigger dev.delivery", "1:1: error: `trigger` needs more words (write `trigger STAGE.SEQUENCE SERVICE "),
        (
            "rerun dev/cart check again from-start",
            "1:22: error: `again` is a word too many (write `rerun STAGE/SERVICE ",
        ),
        ("pass 5 minutes", "1:8: error: `minutes` is a word too many (write `pass DURATION`)"),
        ("pass five", "1:6: error: `five` is no duration (write it as `90s`"),
        ("pass 90000h", "1:6: error: `90000h` is too long"),
        ("do test good", "1:9: error: `good` gives no value (write `key=value`"),
        ("do dev/test", "1:4: error: `dev/test` names no task"),
        ("approve cart", "1:9: error: `cart` names no service (write it as `dev/cart`)"),
        (
            "pods cart dance",
            "1:11: error: pods work, hang or fail (write `pods PREFIX works|hangs|fails [CODE] [KEY=VALUE…]`)",
        ),
        ("do test message=\"half", "1:17: error: a quote is not closed"),
    ] {
        let problems = Script::read("story.txt", line).map(|_| ()).unwrap_err();
        let answer = problems[0].to_string();
        assert!(answer.starts_with(&format!("story.txt:{expected}")), "{line}: {answer}");
    }
}

#[test]
fn a_script_has_bounds() {
    let long = "pass 1s\n".repeat(MOST + 1);
    let problems = Script::read("story.txt", &long).map(|_| ()).unwrap_err();
    assert_eq!(problems[0].to_string(), "story.txt:10001:1: error: a script may have 10000 commands");
    assert!(Script::read("story.txt", &"#".repeat(LARGEST + 1)).is_err());
}
