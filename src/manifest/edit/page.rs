//! The text of a file around one document: where values stand in it, and how it is written.

use super::Refusal;
use super::render::Indentation;
use crate::manifest::yaml::layout::{Entry, Item, Laid, Node, NodeKind, Style, layout};
use crate::manifest::yaml::read_scalar;

/// A file that is about to be changed.
pub(super) struct Page<'a> {
    pub(super) text: &'a str,
    /// What ends its lines.
    pub(super) newline: &'static str,
    pub(super) is_json: bool,
    pub(super) indentation: Indentation,
    laid: Laid,
}

/// What a value hangs on.
#[derive(Clone, Copy)]
pub(super) enum Holder<'p> {
    /// The document.
    Root,
    /// A key.
    Entry(&'p Entry),
    /// A list.
    Item(&'p Item),
}

/// A value and where it hangs.
#[derive(Clone, Copy)]
pub(super) struct Hung<'p> {
    pub(super) node: &'p Node,
    pub(super) holder: Holder<'p>,
    /// Whether only brackets fit there.
    pub(super) is_inside_flow: bool,
}

/// What is at a pointer, or nearest above it.
pub(super) struct Spot<'p> {
    pub(super) here: Hung<'p>,
    /// The collection that has it, and the how manieth in it this is.
    pub(super) parent: Option<(Hung<'p>, usize)>,
    /// The segments that are not there.
    pub(super) missing: Vec<String>,
}

impl<'a> Page<'a> {
    /// `document` counts as the reader does.
    pub(super) fn new(text: &'a str, document: usize) -> Result<Self, Refusal> {
        let unread =
            |at| Refusal { at, message: "this line is not indented as it may be, and is not changed".to_owned() };
        let layout = layout(text).map_err(unread)?;
        let is_json = layout.is_json;
        let mut documents = layout.documents.into_iter().filter(|laid| !is_nothing(&laid.root, text));
        let gone = || Refusal { at: 0, message: format!("there is no document {} in this file", document + 1) };
        let laid = documents.nth(document).ok_or_else(gone)?;
        let newline =
            if text.lines().next().is_some_and(|line| text[line.len()..].starts_with("\r\n")) { "\r\n" } else { "\n" };
        let mut page = Self { text, newline, is_json, indentation: Indentation { step: 2, dash: 0 }, laid };
        page.indentation = page.usual_indentation();
        Ok(page)
    }

    /// As the document has it where it first shows.
    fn usual_indentation(&self) -> Indentation {
        let (mut step, mut dash) = (None, None);
        let mut rest = vec![&self.laid.root];
        while let Some(node) = rest.pop() {
            let NodeKind::Mapping { is_flow: false, entries } = &node.kind else {
                if let NodeKind::Sequence { is_flow: false, items } = &node.kind {
                    rest.extend(items.iter().rev().map(|item| &item.node));
                }
                continue;
            };
            for entry in entries {
                match &entry.node.kind {
                    NodeKind::Mapping { is_flow: false, entries } if !entries.is_empty() => {
                        step = step.or_else(|| entries[0].column.checked_sub(entry.column).filter(|step| *step > 0));
                    }
                    NodeKind::Sequence { is_flow: false, items } => {
                        let first = items.first().and_then(|item| item.dash).map(|first| self.column(first));
                        dash = dash.or_else(|| first?.checked_sub(entry.column));
                    }
                    _ => {}
                }
            }
            rest.extend(entries.iter().rev().map(|entry| &entry.node));
        }
        Indentation { step: step.unwrap_or(2), dash: dash.unwrap_or(0) }
    }

    pub(super) fn find(&self, path: &[String]) -> Result<Spot<'_>, Refusal> {
        let mut here = Hung { node: &self.laid.root, holder: Holder::Root, is_inside_flow: self.is_json };
        let mut parent = None;
        for (depth, segment) in path.iter().enumerate() {
            let missing = |here, parent| Ok(Spot { here, parent, missing: path[depth..].to_vec() });
            let at = here.node.range.start;
            let (index, below) = match &here.node.kind {
                NodeKind::Mapping { is_flow, entries } => {
                    match entries.iter().position(|entry| entry.key == *segment) {
                        Some(index) => {
                            (index, hung(&entries[index].node, Holder::Entry(&entries[index]), here, *is_flow))
                        }
                        None => return missing(here, parent),
                    }
                }
                NodeKind::Sequence { is_flow, items } => match segment.parse::<usize>() {
                    Ok(index) if index < items.len() => {
                        (index, hung(&items[index].node, Holder::Item(&items[index]), here, *is_flow))
                    }
                    Ok(index) if index == items.len() => return missing(here, parent),
                    _ => return Err(Refusal { at, message: format!("this is a list, which has no `{segment}`") }),
                },
                NodeKind::Scalar(_) if is_nothing(here.node, self.text) => return missing(here, parent),
                NodeKind::Scalar(_) => {
                    return Err(Refusal { at, message: format!("this is no mapping, and has no `{segment}`") });
                }
                NodeKind::Alias => {
                    let name = &self.text[here.node.range.clone()];
                    let message = format!("this is `{name}`, a value that stands elsewhere and is shared");
                    return Err(Refusal { at, message });
                }
            };
            (parent, here) = (Some((here, index)), below);
        }
        Ok(Spot { here, parent, missing: Vec::new() })
    }

    pub(super) fn document_text(&self) -> &'a str {
        &self.text[self.laid.range.clone()]
    }

    /// Where the line of a place begins.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(self.first(), |newline| newline + 1)
    }

    /// Where the line ends in which something ends, before what ends the line.
    pub(super) fn line_end(&self, end: usize) -> usize {
        if self.text[..end].ends_with('\n') {
            return self.text[..end - 1].trim_end_matches('\r').len();
        }
        let newline = self.text[end..].find('\n').map_or(self.text.len(), |newline| end + newline);
        end + self.text[end..newline].trim_end_matches('\r').len()
    }

    /// Where the next line begins.
    pub(super) fn next_line(&self, end: usize) -> usize {
        let end = self.line_end(end);
        self.text[end..].find('\n').map_or(self.text.len(), |newline| end + newline + 1)
    }

    /// Characters before a place in its line.
    pub(super) fn column(&self, at: usize) -> usize {
        self.text[self.line_start(at)..at].chars().count()
    }

    /// Whether only white space stands before a place in its line.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        self.text[self.line_start(at)..at].trim().is_empty()
    }

    /// Where the comments begin that stand right above a line, as far to the right as it.
    pub(super) fn comments_above(&self, line: usize, column: usize) -> usize {
        let mut start = line;
        while start > self.first() {
            let above = self.line_start(start - 1);
            let text = &self.text[above..start];
            if !text.trim_start().starts_with('#') || text.len() - text.trim_start().len() != column {
                break;
            }
            start = above;
        }
        start
    }

    /// What stands before the first thing of a place's line.
    pub(super) fn leading(&self, at: usize) -> &'a str {
        let line = &self.text[self.line_start(at)..];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn first(&self) -> usize {
        if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 }
    }

    /// The lines of a value, or with its key, as they can be put elsewhere.
    pub(super) fn words(&self, path: &[String], with_key: bool) -> Option<String> {
        let spot = self.find(path).ok().filter(|spot| spot.missing.is_empty() && !spot.here.is_inside_flow)?;
        let Holder::Entry(entry) = spot.here.holder else { return None };
        let node = spot.here.node;
        let (start, column) = if with_key {
            self.begins_line(entry.start)
                .then(|| (self.comments_above(self.line_start(entry.start), entry.column), entry.column))?
        } else {
            let is_below = node.range.start > self.line_end(entry.colon);
            is_below.then(|| (self.next_line(entry.colon), self.column(node.range.start)))?
        };
        let lines = self.text[start..self.line_end(node.range.end)].lines().map(|line| dedented(line, column));
        Some(lines.collect::<Option<Vec<_>>>()?.join("\n") + "\n")
    }
}

/// A line further to the left; none that would lose something.
fn dedented(line: &str, column: usize) -> Option<&str> {
    let content = line.trim_start_matches(' ');
    if content.trim().is_empty() || content.starts_with('#') && line.len() - content.len() < column {
        return Some(if line.len() > column { &line[column..] } else { content.trim() });
    }
    line.get(column..).filter(|_| line.len() - content.len() >= column)
}

fn hung<'p>(node: &'p Node, holder: Holder<'p>, above: Hung<'p>, is_flow: bool) -> Hung<'p> {
    Hung { node, holder, is_inside_flow: above.is_inside_flow || is_flow }
}

/// Whether a value is null, or not there at all.
pub(super) fn is_nothing(node: &Node, text: &str) -> bool {
    match node.kind {
        NodeKind::Scalar(Style::Empty) => true,
        NodeKind::Scalar(Style::Plain) => read_scalar(&text[node.range.clone()]).is_null(),
        _ => false,
    }
}
