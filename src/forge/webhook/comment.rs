//! What calls say about comments on pull requests, and which of their lines are commands. What Markdown shows as quoted or as
//! code, or does not show, is no command.

use serde_json::Value;

use crate::clock::from_rfc3339;
use crate::forge::text::{Hidden, one_line};
use crate::model::comment::{Author, Comment};
use crate::model::time::Timestamp;

/// What a command begins with.
const WORD: &str = "/launchway";
/// What is hidden at the beginning of all comments of launchway's own.
const OWN: &str = "launchway/";
/// The longest comment that is read, in bytes: GitHub has no longer ones.
const LONGEST: usize = 65_536;
/// The longest command, in characters: a longer one is cut, and refused where it is read.
const LONGEST_LINE: usize = 300;
/// No more commands of a comment are kept; fewer are carried out.
const MOST_LINES: usize = 20;
/// The longest name of a person or a repository.
const LONGEST_NAME: usize = 255;

/// A comment in the words of its host.
#[derive(Clone, Debug)]
pub(in crate::forge) struct Written<'a> {
    pub(in crate::forge) is_new: bool,
    /// The pull request that it is on, if it is on one as a whole.
    pub(in crate::forge) pull: Option<u64>,
    pub(in crate::forge) is_by_program: bool,
    pub(in crate::forge) id: Option<u64>,
    pub(in crate::forge) repository: Option<String>,
    pub(in crate::forge) login: Option<String>,
    pub(in crate::forge) author: Option<String>,
    pub(in crate::forge) at: Option<Timestamp>,
    pub(in crate::forge) text: Option<&'a str>,
}

/// How a host tells of comments.
#[derive(Clone, Copy, Debug)]
pub struct Comments {
    /// The names of events about them.
    pub(in crate::forge) events: &'static [&'static str],
    pub(in crate::forge) read: fn(&Value) -> Written<'_>,
}

impl Comments {
    /// Those of a host that is not known to tell of them.
    pub(in crate::forge) const NONE: Self = Self { events: &[], read: in_words_of_github };
}

/// The text at a pointer.
pub(in crate::forge) fn text<'a>(payload: &'a Value, pointer: &str) -> Option<&'a str> {
    payload.pointer(pointer)?.as_str()
}

/// The number at a pointer.
pub(in crate::forge) fn number(payload: &Value, pointer: &str) -> Option<u64> {
    payload.pointer(pointer)?.as_u64()
}

/// The time at a pointer.
pub(in crate::forge) fn time(payload: &Value, pointer: &str) -> Option<Timestamp> {
    from_rfc3339(&text(payload, pointer)?.replacen(" UTC", "Z", 1))
}

/// A comment in the words of GitHub, which Gitea and its relatives share. A program has no number, or says that it is one.
pub(in crate::forge) fn in_words_of_github(payload: &Value) -> Written<'_> {
    let is_pull = payload.pointer("/issue/pull_request").is_some_and(Value::is_object)
        || payload.pointer("/is_pull").and_then(Value::as_bool) == Some(true);
    let login = text(payload, "/comment/user/login");
    let author = number(payload, "/comment/user/id");
    Written {
        is_new: text(payload, "/action") == Some("created"),
        pull: number(payload, "/issue/number").filter(|_| is_pull),
        is_by_program: text(payload, "/comment/user/type") == Some("Bot")
            || author.is_none_or(|id| id == 0)
            || login.is_some_and(|login| login.ends_with("[bot]")),
        id: number(payload, "/comment/id"),
        repository: text(payload, "/repository/full_name").map(str::to_owned),
        login: login.map(str::to_owned),
        author: author.map(|id| id.to_string()),
        at: time(payload, "/comment/created_at"),
        text: text(payload, "/comment/body"),
    }
}

/// The comment with commands that a call tells of.
///
/// # Errors
/// Why it is of no interest.
pub(super) fn comment(written: Written<'_>) -> Result<Comment, String> {
    if !written.is_new {
        return Err("the comment is not a new one".to_owned());
    }
    let Some(pull) = written.pull else { return Err("the comment is on no pull request as a whole".to_owned()) };
    if written.is_by_program {
        return Err("the comment is by a program".to_owned());
    }
    let body = written.text.unwrap_or_default();
    if Hidden::found(body).is_some_and(|hidden| hidden.starts_with(OWN)) {
        return Err("the comment is launchway's own".to_owned());
    }
    if body.len() > LONGEST {
        return Err(format!("the comment has more than {LONGEST} bytes"));
    }
    let commands = commands(body);
    if commands.is_empty() {
        return Err(format!("no line of the comment begins with `{WORD}`"));
    }
    let missing = |what: &str| format!("the call does not say {what}");
    let login = written.login.filter(|login| login.split('/').count() == 1 && is_path(login));
    let author = login.zip(written.author).map(|(login, id)| Author { login, id });
    let repository = written.repository.filter(|path| is_path(path));
    Ok(Comment {
        id: written.id.ok_or_else(|| missing("which comment it is"))?,
        pull,
        repository: repository.ok_or_else(|| missing("in which repository the comment is"))?,
        author: author.ok_or_else(|| missing("who wrote the comment, by a name of letters, digits and `-_.~`"))?,
        at: written.at.ok_or_else(|| missing("when the comment was written"))?,
        commands,
    })
}

/// Whether something may be the path of a repository, or the name of a person.
pub(super) fn is_path(path: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let is_name = |name: &str| name.bytes().all(is_of_names) && name.bytes().any(|byte| !b".~".contains(&byte));
    path.len() <= LONGEST_NAME && path.split('/').all(is_name)
}

/// Where in a text a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    /// In what is shown as text.
    Text,
    /// In a quote, which goes on until a line is empty, whatever its lines begin with.
    Quote,
    /// In code between lines of at least so many of these.
    Fence(char, usize),
    /// In something that ends so.
    Element(&'static str),
}

/// The lines of a comment that are commands.
pub(super) fn commands(text: &str) -> Vec<String> {
    let (mut within, mut found) = (Within::Text, Vec::new());
    for line in text.lines() {
        if within == Within::Text && is_command(line) && found.len() < MOST_LINES {
            found.push(one_line(line, LONGEST_LINE));
        }
        within = after(within, line);
    }
    found
}

fn is_command(line: &str) -> bool {
    let rest = line.strip_prefix(WORD);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Where the next line is.
fn after(within: Within, line: &str) -> Within {
    let indented = line.len() - line.trim_start_matches(' ').len();
    let begins = if indented < 4 { line.trim_start_matches(' ') } else { "" };
    match within {
        Within::Fence(mark, least) => match fence(begins) {
            Some((of, many, "")) if of == mark && many >= least => Within::Text,
            _ => within,
        },
        Within::Element(end) => match line.to_ascii_lowercase().split_once(end) {
            Some((_, rest)) => opened(rest).map_or(Within::Text, Within::Element),
            None => within,
        },
        Within::Quote if line.trim().is_empty() => Within::Text,
        Within::Quote => within,
        Within::Text if begins.starts_with('>') => Within::Quote,
        Within::Text => match fence(begins) {
            Some(('`', _, info)) if info.contains('`') => Within::Text, // code in a line
            Some((mark, many, _)) => Within::Fence(mark, many),
            None => opened(&line.to_ascii_lowercase()).map_or(Within::Text, Within::Element),
        },
    }
}

/// The marks that a line begins with which fence code in, how many there are, and what follows.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let many = line.len() - rest.len();
    (many >= 3).then(|| (mark, many, rest.trim()))
}

/// How the element ends that is open at the end of a line: a remark that nobody sees, or code.
fn opened(line: &str) -> Option<&'static str> {
    const ELEMENTS: [(&str, &str); 4] =
        [("<!--", "-->"), ("<pre", "</pre>"), ("<code", "</code>"), ("<blockquote", "</blockquote>")];
    let mut rest = line;
    loop {
        let begun = ELEMENTS.iter().filter_map(|(begin, end)| Some((rest.find(begin)?, begin.len(), *end)));
        let (place, length, end) = begun.min_by_key(|(place, ..)| *place)?;
        let Some((_, later)) = rest[place + length..].split_once(end) else { return Some(end) };
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_that_are_shown_as_text_and_begin_so_are_commands() {
        for (text, expected) in [
            ("/launchway retry web", &["/launchway retry web"][..]),
            ("Looks bad.\r\n\r\n/launchway  rollback\tweb -s prod \r\n", &["/launchway rollback web -s prod"]),
            ("/launchway retry a\n/launchway retry b\nthanks", &["/launchway retry a", "/launchway retry b"]),
            ("/launchway", &["/launchway"]),
            ("/launchway retry w\u{200b}eb\u{202e}", &["/launchway retry web"]),
            ("> quoted\n\n/launchway retry web", &["/launchway retry web"]),
            ("```\ncode\n```\n/launchway retry web", &["/launchway retry web"]),
            ("~~~ sh\n```\n~~~~\n/launchway retry web", &["/launchway retry web"]),
            ("```of one line```\n/launchway retry web", &["/launchway retry web"]),
            ("<!-- seen? --> <pre>x</PRE>\n/launchway retry web", &["/launchway retry web"]),
            ("<!--\nhidden\n-->\n/launchway retry web", &["/launchway retry web"]),
            // What only looks like one.
            ("please /launchway retry web", &[]),
            (" /launchway retry web", &[]),
            ("    /launchway retry web", &[]),
            ("\t/launchway retry web", &[]),
            ("- /launchway retry web", &[]),
            ("`/launchway retry web`", &[]),
            ("/launchways retry web", &[]),
            ("/Launchway retry web", &[]),
            ("launchway retry web", &[]),
            ("text\r/launchway retry web", &[]),
            ("", &[]),
            // Quoted, also by a program that has broken the line.
            ("> /launchway retry web", &[]),
            ("   > what I\n/launchway retry web", &[]),
            (">\n/launchway retry web", &[]),
            ("<blockquote>\n/launchway retry web\n</blockquote>", &[]),
            // Code.
            ("```\n/launchway retry web\n```", &[]),
            ("  ````sh\n/launchway retry a\n```\n/launchway retry b", &[]),
            ("~~~\n/launchway retry a\n```\n/launchway retry b\n~~~ no end\n/launchway retry c", &[]),
            ("```\n    ```\n/launchway retry web", &[]),
            ("<PRE class=x>\n/launchway retry web\n</pre>", &[]),
            ("see <code>\n/launchway retry web\n</code>", &[]),
            // What nobody sees.
            ("<!--\n/launchway retry web\n-->", &[]),
            ("fine <!-- a --> <!-- b\n/launchway retry web\n--> <!--\n/launchway retry web", &[]),
        ] {
            assert_eq!(commands(text), expected, "{text:?}");
        }
        let many = "/launchway retry web\n".repeat(1000);
        assert_eq!(commands(&many).len(), MOST_LINES);
        let long = commands(&format!("/launchway retry {}", "ü".repeat(60_000)));
        assert!(long[0].chars().count() == LONGEST_LINE && long[0].ends_with('…'), "{long:?}");
    }

    fn github() -> Value {
        json!({
            "action": "created", "issue": {"number": 7, "pull_request": {"html_url": "https://git.example/pulls/7"}},
            "comment": {
                "id": 12, "user": {"login": "ann", "id": 3, "type": "User"}, "created_at": "2026-11-26T12:00:00Z",
                "body": "/launchway retry web",
            },
            "repository": {"full_name": "acme/shop"},
        })
    }

    #[test]
    fn a_new_comment_of_a_person_on_a_pull_request_is_read() {
        let read = comment(in_words_of_github(&github())).unwrap();
        let author = Author { login: "ann".to_owned(), id: "3".to_owned() };
        let commands = vec!["/launchway retry web".to_owned()];
        let at = from_rfc3339("2026-11-26T12:00:00Z").unwrap();
        assert_eq!(read, Comment { id: 12, pull: 7, repository: "acme/shop".to_owned(), author, at, commands });
        let mut gitea = github();
        gitea["issue"] = json!({"number": 7, "pull_request": null});
        gitea["is_pull"] = json!(true);
        gitea["comment"]["user"] = json!({"login": "ann", "id": 3});
        gitea["comment"]["created_at"] = json!("2026-11-26T13:00:00+01:00");
        assert_eq!(comment(in_words_of_github(&gitea)).unwrap(), read);
    }

    #[test]
    fn whatever_else_it_is_is_said() {
        let nobody = "the call does not say who wrote the comment, by a name of letters, digits and `-_.~`";
        let long = format!("/launchway retry web\n{}", "x".repeat(LONGEST));
        for (pointer, value, why) in [
            ("/action", json!("edited"), "the comment is not a new one"),
            ("/action", json!("deleted"), "the comment is not a new one"),
            ("/action", Value::Null, "the comment is not a new one"),
            ("/issue/pull_request", Value::Null, "the comment is on no pull request as a whole"),
            ("/issue/number", json!("7"), "the comment is on no pull request as a whole"),
            ("/comment/user/type", json!("Bot"), "the comment is by a program"),
            ("/comment/user/login", json!("ci[bot]"), "the comment is by a program"),
            ("/comment/user/id", json!(-2), "the comment is by a program"),
            ("/comment/user", Value::Null, "the comment is by a program"),
            ("/comment/user/login", json!("../admin?x"), nobody),
            ("/comment/user/login", json!(""), nobody),
            ("/comment/user/login", json!(".."), nobody),
            ("/comment/user/login", json!("ann/x"), nobody),
            (
                "/repository/full_name",
                json!("acme/../shop"),
                "the call does not say in which repository the comment is",
            ),
            ("/comment/id", json!(-1), "the call does not say which comment it is"),
            ("/comment/created_at", json!("yesterday"), "the call does not say when the comment was written"),
            ("/repository/full_name", json!({}), "the call does not say in which repository the comment is"),
            ("/comment/body", json!("well done"), "no line of the comment begins with `/launchway`"),
            ("/comment/body", Value::Null, "no line of the comment begins with `/launchway`"),
            (
                "/comment/body",
                json!("<!-- launchway/answer -->\n/launchway retry web"),
                "the comment is launchway's own",
            ),
            (
                "/comment/body",
                json!("[//]: # (launchway/plan 1a2b)\n/launchway retry web"),
                "the comment is launchway's own",
            ),
            ("/comment/body", json!(long), "the comment has more than 65536 bytes"),
        ] {
            let mut payload = github();
            *payload.pointer_mut(pointer).unwrap() = value.clone();
            assert_eq!(comment(in_words_of_github(&payload)), Err(why.to_owned()), "{pointer} {value}");
        }
        assert!(comment(in_words_of_github(&json!([]))).is_err());
    }

    proptest! {
        #[test]
        fn commands_are_whole_lines_of_the_text(text in "(/launchway|retry|>|```|~~~|<!--|-->|<pre|</pre>|[ \t\n\r]|\\PC){0,40}") {
            for command in commands(&text) {
                prop_assert!(command.starts_with(WORD) && !command.contains(['\n', '\r']));
                prop_assert!(text.lines().any(|line| one_line(line, LONGEST_LINE) == command && line.starts_with(WORD)));
            }
        }
    }
}
