//! One change of a value as changes of the text around it.

use std::ops::Range;

use serde_json::{Map, Value};

use super::change::{Change, To, segments, wrapped};
use super::page::{Holder, Hung, Page, Spot};
use super::{Refusal, flow, render};
use crate::manifest::yaml::layout::{Node, NodeKind, Style};

/// Text in the place of other text.
pub(super) type Splice = (Range<usize>, String);

/// A value that is to stand somewhere.
pub(super) struct New {
    pub(super) value: Value,
    /// The lines in which it was written elsewhere.
    words: Option<String>,
}

impl New {
    /// The same inside of mappings with these keys.
    fn inside(&self, keys: &[String], step: usize) -> Self {
        let words = self.words.as_ref().map(|words| {
            keys.iter().rev().fold(words.clone(), |words, key| {
                let inner = words.lines().map(|line| indented(line, step)).collect::<Vec<_>>().join("\n");
                format!("{}:\n{inner}\n", render::plain_or_quoted(key, false))
            })
        });
        Self { value: wrapped(keys, &self.value), words }
    }

    /// Its lines in a block, each with its indentation.
    fn lines(&self, column: usize, page: &Page<'_>) -> Vec<String> {
        match &self.words {
            Some(words) => words.lines().map(|line| indented(line, column)).collect(),
            None => {
                let mut lines = render::block(&self.value, column, page.indentation);
                if let Some(first) = lines.first_mut() {
                    *first = indented(first, column);
                }
                lines
            }
        }
    }
}

fn indented(line: &str, column: usize) -> String {
    if line.is_empty() { String::new() } else { format!("{}{line}", " ".repeat(column)) }
}

impl Page<'_> {
    /// The text with a change in it.
    pub(super) fn with(&self, change: &Change) -> Result<String, Refusal> {
        let spot = self.find(&segments(&change.pointer))?;
        let mut splices = match &change.to {
            To::Value(value) => self.set(&spot, &New { value: value.clone(), words: None }),
            To::Written(value, words) => self.set(&spot, &New { value: value.clone(), words: Some(words.clone()) }),
            To::Nothing => self.remove(&spot, false)?,
            To::Moved => self.remove(&spot, true)?,
        };
        splices.sort_by_key(|(range, _)| std::cmp::Reverse((range.start, range.end)));
        let mut text = self.text.to_owned();
        splices.into_iter().for_each(|(range, new)| text.replace_range(range, &new));
        Ok(text)
    }

    fn set(&self, spot: &Spot<'_>, new: &New) -> Vec<Splice> {
        let here = spot.here;
        let Some((key, deeper)) = spot.missing.split_first() else { return self.replace(here, new) };
        let new = new.inside(deeper, self.indentation.step);
        let point = self.behind(here);
        match &here.node.kind {
            NodeKind::Mapping { is_flow: false, entries } => {
                let column = entries.first().map_or(0, |entry| entry.column);
                vec![(point..point, self.as_lines(&self.entry(key, &new, column)))]
            }
            NodeKind::Sequence { is_flow: false, items } => {
                let column = items.first().and_then(|item| item.dash).map_or(0, |dash| self.column(dash));
                vec![(point..point, self.as_lines(&dashed(&new, column, self)))]
            }
            NodeKind::Mapping { entries, .. } if !entries.is_empty() => {
                flow::add(self, here.node, Some(key), &new.value)
            }
            NodeKind::Sequence { items, .. } if !items.is_empty() => flow::add(self, here.node, None, &new.value),
            NodeKind::Sequence { .. } => self.replace(here, &New { value: Value::Array(vec![new.value]), words: None }),
            _ => self.replace(here, &new.inside(std::slice::from_ref(key), self.indentation.step)),
        }
    }

    /// Where something is added to a block: behind its last line, and behind the comments that can only be its own.
    fn behind(&self, here: Hung<'_>) -> usize {
        let outer = match here.holder {
            Holder::Root => return self.line_end(here.node.range.end),
            Holder::Entry(entry) => entry.column,
            Holder::Item(item) => item.dash.map_or(0, |dash| self.column(dash)),
        };
        let mut end = self.line_end(here.node.range.end);
        loop {
            let next = self.next_line(end);
            let line = self.text[next..].lines().next().unwrap_or_default();
            let column = line.len() - line.trim_start_matches(' ').len();
            if next <= end || !line.trim_start().starts_with('#') || column <= outer {
                return end;
            }
            end = self.line_end(next + line.trim_end().len());
        }
    }

    /// The lines of a key and its value.
    fn entry(&self, key: &str, new: &New, column: usize) -> Vec<String> {
        if new.words.is_none() || !render::is_block(&new.value) {
            return render::entry(key, &new.value, column, self.indentation);
        }
        let deeper = column + self.deeper(&new.value);
        let head = indented(&format!("{}:", render::plain_or_quoted(key, false)), column);
        std::iter::once(head).chain(new.lines(deeper, self)).collect()
    }

    fn deeper(&self, value: &Value) -> usize {
        if value.is_array() { self.indentation.dash } else { self.indentation.step }
    }

    /// Lines that follow one.
    fn as_lines(&self, lines: &[String]) -> String {
        lines.iter().map(|line| format!("{}{line}", self.newline)).collect()
    }

    /// Another value in the place of one.
    fn replace(&self, here: Hung<'_>, new: &New) -> Vec<Splice> {
        if here.is_inside_flow {
            return vec![(here.node.range.clone(), flow::value(self, here, &new.value))];
        }
        if render::is_block(&new.value) { self.with_block(here, new) } else { self.with_scalar(here, &new.value) }
    }

    fn with_scalar(&self, here: Hung<'_>, value: &Value) -> Vec<Splice> {
        let Range { start, end } = here.node.range;
        if let Holder::Entry(entry) = here.holder
            && start > self.line_end(entry.colon)
        {
            // Comments between the key and the first value stay, and lines of a text would swallow them.
            let scalar = format!(" {}", render::scalar(value, Style::Plain, false));
            let lines = self.line_end(self.line_start(start))..self.line_end(end);
            return vec![(entry.colon..entry.colon, scalar), (lines, String::new())];
        }
        let style = match here.node.kind {
            NodeKind::Scalar(style) => style,
            _ => Style::Plain,
        };
        let column = match here.holder {
            Holder::Entry(entry) => entry.column + self.indentation.step,
            Holder::Item(item) => item.dash.map_or(0, |dash| self.column(dash)) + 2,
            Holder::Root => 0,
        };
        let column = if style == Style::Literal { self.literal_column(start..end).unwrap_or(column) } else { column };
        let lines = render::scalar_lines(value, style, column);
        let (first, rest) = (&lines[0], &lines[1..]);
        if style == Style::Literal && !rest.is_empty() {
            let header = start + self.text[start..].find([' ', '\t', '\r', '\n']).unwrap_or(0);
            return vec![(start..header, first.clone()), (self.line_end(header)..end, self.as_lines(rest))];
        }
        let gap = if style == Style::Empty { " " } else { "" };
        let behind = self.line_end(end);
        vec![(start..end, format!("{gap}{first}")), (behind..behind, self.as_lines(rest))]
    }

    /// How far to the right the lines of a text stand.
    fn literal_column(&self, range: Range<usize>) -> Option<usize> {
        let line = self.text[range].lines().skip(1).find(|line| !line.trim().is_empty())?;
        Some(line.len() - line.trim_start_matches(' ').len())
    }

    fn with_block(&self, here: Hung<'_>, new: &New) -> Vec<Splice> {
        let Range { start, end } = here.node.range;
        match here.holder {
            Holder::Root => vec![(start..end, self.joined(&new.lines(0, self)))],
            Holder::Item(item) => {
                let dash = item.dash.unwrap_or(start);
                let lines = new.lines(self.column(dash) + 2, self);
                vec![(dash + 1..end, format!(" {}", self.joined(&lines)))]
            }
            Holder::Entry(entry) => {
                let lines = new.lines(entry.column + self.deeper(&new.value), self);
                if start > self.line_end(entry.colon) {
                    // Words bring their comments along: those that were there are among them.
                    let whole = self.next_line(entry.colon)..self.line_end(end);
                    let old = if new.words.is_some() { whole } else { self.line_start(start)..end };
                    return vec![(old, lines.join(self.newline))];
                }
                let behind = self.line_end(end);
                vec![(entry.colon..end, String::new()), (behind..behind, self.as_lines(&lines))]
            }
        }
    }

    /// Lines of which the first one begins where something else does.
    fn joined(&self, lines: &[String]) -> String {
        lines.join(self.newline).trim_start_matches(' ').to_owned()
    }

    fn remove(&self, spot: &Spot<'_>, with_comments: bool) -> Result<Vec<Splice>, Refusal> {
        let at = spot.here.node.range.start;
        let Some((parent, index)) = spot.parent.filter(|_| spot.missing.is_empty()) else {
            return Err(Refusal { at, message: "this is not where it is said, and cannot go".to_owned() });
        };
        let (starts, is_flow, empty) = match &parent.node.kind {
            NodeKind::Mapping { is_flow, entries } => {
                let starts: Vec<usize> = entries.iter().map(|entry| entry.start).collect();
                (starts, *is_flow, Value::Object(Map::new()))
            }
            NodeKind::Sequence { is_flow, items } => {
                let starts = items.iter().map(|item| item.dash.unwrap_or(item.node.range.start)).collect();
                (starts, *is_flow, Value::Array(Vec::new()))
            }
            _ => return Err(Refusal { at, message: "this has nothing that could go".to_owned() }),
        };
        if starts.len() == 1 {
            return Ok(self.emptied(parent, &empty, with_comments));
        }
        if is_flow {
            return Ok(flow::remove(self, parent.node, index));
        }
        Ok(vec![(self.lines_of(&starts, index, spot.here.node, with_comments), String::new())])
    }

    /// A collection that loses the last thing that it has.
    fn emptied(&self, parent: Hung<'_>, empty: &Value, with_comments: bool) -> Vec<Splice> {
        let mut splices = self.replace(parent, &New { value: empty.clone(), words: None });
        if let (true, Holder::Entry(entry)) = (with_comments, parent.holder)
            && parent.node.range.start > self.line_end(entry.colon)
            && let Some((cut, _)) = splices.iter_mut().find(|(range, _)| range.start > entry.colon)
        {
            let first = self.line_start(parent.node.range.start);
            let above = self.comments_above(first, self.column(parent.node.range.start));
            cut.start = cut.start.min(self.line_end(above));
        }
        splices
    }

    /// What goes of a block with one of its values.
    fn lines_of(&self, starts: &[usize], index: usize, node: &Node, with_comments: bool) -> Range<usize> {
        let (start, end) = (starts[index], node.range.end);
        if !self.begins_line(start) {
            // The first key behind a dash: the next one takes its place, unless comments stand between.
            let next = starts.get(index + 1).copied().unwrap_or(end);
            let is_bare = !self.text[end..next].contains('#');
            return start..if is_bare { next } else { end };
        }
        let line = self.line_start(start);
        let first = if with_comments { self.comments_above(line, self.column(start)) } else { line };
        let behind = self.next_line(end);
        if behind == self.text.len() && !self.text.ends_with('\n') && first > 0 {
            return self.line_end(first)..behind;
        }
        first..behind
    }
}

fn dashed(new: &New, column: usize, page: &Page<'_>) -> Vec<String> {
    let mut lines = match new.words {
        Some(_) => new.lines(column + 2, page),
        None => return render::dashed(&new.value, column, page.indentation),
    };
    if let Some(first) = lines.first_mut() {
        *first = format!("{}- {}", " ".repeat(column), first.trim_start());
    }
    lines
}
