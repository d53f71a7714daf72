//! Changes inside of brackets and braces, JSON among them.

use serde_json::Value;

use super::page::{Holder, Hung, Page};
use super::render;
use super::splice::Splice;
use crate::manifest::yaml::layout::{Node, NodeKind, Style, behind_blanks};

/// The text of a value in the place of one.
pub(super) fn value(page: &Page<'_>, here: Hung<'_>, value: &Value) -> String {
    if page.is_json {
        let at = match here.holder {
            Holder::Root => here.node.range.start,
            Holder::Entry(entry) => entry.start,
            Holder::Item(item) => item.node.range.start,
        };
        return json(page, value, page.leading(at));
    }
    match here.node.kind {
        NodeKind::Scalar(Style::Empty) => format!(" {}", render::flow(value)),
        NodeKind::Scalar(style) if !render::is_block(value) => render::scalar(value, style, true),
        _ => render::flow(value),
    }
}

/// Adds a value to one that is not empty; on a line of its own where the last one has one.
pub(super) fn add(page: &Page<'_>, node: &Node, key: Option<&str>, value: &Value) -> Vec<Splice> {
    let text = page.text;
    let Some(&(start, end)) = spans(node).last() else { return Vec::new() };
    let comma = Some(behind_blanks(text, end)).filter(|at| text[*at..].starts_with(','));
    let is_in_lines = text[node.range.start..start].contains('\n') && text[end..node.range.end].contains('\n');
    let written = |leading: &str| {
        let inner = if page.is_json { json(page, value, leading) } else { render::flow(value) };
        match key {
            Some(key) if page.is_json => format!("{}: {inner}", Value::from(key)),
            Some(key) => format!("{}: {inner}", render::plain_or_quoted(key, true)),
            None => inner,
        }
    };
    if !is_in_lines {
        return vec![(end..end, format!(", {}", written("")))];
    }
    let leading = page.leading(start);
    let line_end = page.line_end(comma.map_or(end, |comma| comma + 1));
    let after = if comma.is_some() { "," } else { "" };
    let line = format!("{}{leading}{}{after}", page.newline, written(leading));
    match comma {
        Some(_) => vec![(line_end..line_end, line)],
        None if line_end == end => vec![(end..end, format!(",{line}"))],
        None => vec![(end..end, ",".to_owned()), (line_end..line_end, line)],
    }
}

/// What goes with one of several values, commas included.
pub(super) fn remove(page: &Page<'_>, node: &Node, index: usize) -> Vec<Splice> {
    let (spans, text) = (spans(node), page.text);
    let (start, end) = spans[index];
    let cut = match (spans.get(index + 1), index.checked_sub(1).map(|before| spans[before])) {
        (Some(&(next, _)), _) if !text[end..next].contains('#') => start..next,
        (None, Some((_, before))) if !text[before..start].contains('#') => before..end,
        _ => {
            // A comment is between: that of another stays, and so does the comma before the last value.
            let behind = behind_blanks(text, end);
            let end = if text[behind..].starts_with(',') { behind + 1 } else { end };
            let rest = text[end..page.line_end(end)].trim();
            let is_alone = page.begins_line(start) && (rest.is_empty() || rest.starts_with('#'));
            if is_alone { page.line_start(start)..page.next_line(end) } else { start..end }
        }
    };
    vec![(cut, String::new())]
}

/// Where each value begins, with its key, and ends.
fn spans(node: &Node) -> Vec<(usize, usize)> {
    match &node.kind {
        NodeKind::Mapping { entries, .. } => {
            entries.iter().map(|entry| (entry.start, entry.node.range.end.max(entry.colon))).collect()
        }
        NodeKind::Sequence { items, .. } => {
            items.iter().map(|item| (item.node.range.start, item.node.range.end)).collect()
        }
        _ => Vec::new(),
    }
}

/// JSON in lines, where the document has any.
fn json(page: &Page<'_>, value: &Value, leading: &str) -> String {
    let document = page.document_text().trim();
    let step = document.lines().nth(1).map(|line| &line[..line.len() - line.trim_start().len()]);
    match step.filter(|step| !step.is_empty()) {
        Some(step) => render::json(value, Some((leading, step))).replace('\n', page.newline),
        None => render::json(value, None),
    }
}
