//! The objectives of an `evaluation` task. Only a task that has them is launchway's own to judge: without, its properties
//! are for whoever does it.

use std::collections::HashSet;

use serde_json::Value;

use crate::manifest::findings::Findings;
use crate::manifest::pod_template::{items, text_at};
use crate::manifest::shape::evaluation::EVALUATION;
use crate::manifest::shape::{Strictness, Type, check_at};
use crate::manifest::yaml::push_segment;
use crate::model::evaluation::{Criterion, Percent, Timeframe};

/// The most objectives of one task: each may be a question to Prometheus.
const MOST: usize = 50;
/// The longest query in bytes: it is a part of an address.
const LONGEST_QUERY: usize = 4096;
/// The longest value of a filter in bytes: queries may have it several times.
const LONGEST_VALUE: usize = 256;

/// Checks the properties at `at`, which declare objectives, and normalises them.
pub(in crate::manifest) fn read(properties: &mut Value, at: &str, findings: &mut Findings<'_>) {
    let version = properties.get("spec_version").cloned().unwrap_or(Value::Null);
    let is_known = version.is_null() || version == "1.0" || version.as_f64() == Some(1.0);
    if !is_known {
        let told = findings.error(&format!("{at}/spec_version"), "unsupported-value", "this version is not known");
        told.hint = Some("write `spec_version: \"1.0\"`, or leave it out".to_owned());
    }
    check_at(at, properties, Type::Object(&EVALUATION), Strictness::Own, findings);
    objectives(properties, at, findings);
    total_score(properties, at, findings);
    if let Some(text) = properties.get("timeframe").and_then(Value::as_str)
        && let Err(wrong) = Timeframe::try_from(text.to_owned())
    {
        findings.error(&format!("{at}/timeframe"), "invalid", wrong).hint = Some("such as 90s, 10m or 1h".to_owned());
    }
    prometheus(properties, at, findings);
    filter(properties, at, findings);
}

fn objectives(properties: &Value, at: &str, findings: &mut Findings<'_>) {
    let mut seen = HashSet::new();
    for (index, objective) in items(properties, "/objectives") {
        let (sli, here) = (text_at(objective, "/sli"), format!("{at}/objectives/{index}"));
        if !sli.is_empty() && !seen.insert(sli) {
            findings.error(&format!("{here}/sli"), "duplicate", format!("there is another objective about `{sli}`"));
        }
        if index == MOST {
            findings.error(&here, "invalid", format!("a task may have {MOST} objectives, not more"));
        }
        for groups in ["pass", "warning"] {
            for (group, value) in items(objective, &format!("/{groups}")) {
                for (number, criterion) in items(value, "/criteria") {
                    criterion_at(criterion, &format!("{here}/{groups}/{group}/criteria/{number}"), findings);
                }
            }
        }
        if objective.get("warning").is_some() && objective.get("pass").is_none() {
            let message = "it has no effect: without `pass`, the objective is only shown";
            findings.warning(&format!("{here}/warning"), "shipyard", message);
        }
    }
}

fn criterion_at(criterion: &Value, at: &str, findings: &mut Findings<'_>) {
    let Some(text) = criterion.as_str() else { return };
    if let Err(wrong) = Criterion::try_from(text.to_owned()) {
        findings.error(at, "invalid", wrong).hint =
            Some("such as \"<600\", \">=99.5\", \"<=+10%\" or \">=-5\"; operators are <, <=, =, >= and >".to_owned());
    }
}

fn total_score(properties: &Value, at: &str, findings: &mut Findings<'_>) {
    let mut read = |key: &str| {
        let value = properties.pointer(&format!("/total_score/{key}"))?.clone();
        let percent = Percent::try_from(value);
        if let Err(wrong) = &percent {
            findings.error(&format!("{at}/total_score/{key}"), "invalid", *wrong).hint = Some("such as 90%".to_owned());
        }
        percent.ok()
    };
    if let (Some(pass), Some(warning)) = (read("pass"), read("warning"))
        && warning > pass
    {
        let message = "must not be more than `pass`: nothing would be a warning";
        findings.error(&format!("{at}/total_score/warning"), "invalid", message);
    }
}

fn prometheus(properties: &Value, at: &str, findings: &mut Findings<'_>) {
    let url = text_at(properties, "/prometheus/url");
    let wrong = if url.is_empty() { None } else { not_an_address(url) };
    if let Some(wrong) = wrong {
        findings.error(&format!("{at}/prometheus/url"), "invalid", wrong).hint =
            Some("such as http://prometheus:9090".to_owned());
    }
    let names: HashSet<&str> =
        items(properties, "/objectives").map(|(_, objective)| text_at(objective, "/sli")).collect();
    let queries = properties.pointer("/prometheus/queries").and_then(Value::as_object);
    for (sli, query) in queries.into_iter().flatten() {
        let mut here = format!("{at}/prometheus/queries");
        push_segment(&mut here, sli);
        let length = query.as_str().map_or(1, str::len);
        if length == 0 || length > LONGEST_QUERY {
            findings.error(&here, "invalid", format!("a query has 1 to {LONGEST_QUERY} bytes"));
        }
        if !names.contains(sli.as_str()) {
            findings.warning(&here, "shipyard", format!("it has no effect: no objective is about `{sli}`"));
        }
    }
}

/// What no query names changes nothing.
fn filter(properties: &Value, at: &str, findings: &mut Findings<'_>) {
    let queries = properties.pointer("/prometheus/queries").and_then(Value::as_object);
    let is_in =
        |name: &str| queries.into_iter().flatten().any(|(_, query)| query.as_str().is_some_and(|it| it.contains(name)));
    let filter = properties.get("filter").and_then(Value::as_object);
    for (key, value) in filter.into_iter().flatten() {
        let mut here = format!("{at}/filter");
        push_segment(&mut here, key);
        if key.is_empty() || value.as_str().is_some_and(|value| value.len() > LONGEST_VALUE) {
            findings.error(&here, "invalid", format!("has a name, and a value of {LONGEST_VALUE} bytes at most"));
        } else if !is_in(&format!("${key}")) && !is_in(&format!("${}", key.to_uppercase())) {
            findings.warning(&here, "shipyard", format!("it has no effect: no query has `${key}`"));
        }
    }
}

/// Why a text is no address of a Prometheus.
fn not_an_address(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else { return Some("must begin with http:// or https://") };
    let host = rest.split('/').next().unwrap_or_default();
    match () {
        () if host.contains('@') => Some("must not have a user or a password: everybody can read it here"),
        () if host.is_empty() => Some("must name a host"),
        () if url.contains(|it: char| it.is_whitespace() || matches!(it, '?' | '#')) => {
            Some("must be an address without spaces, `?` and `#`")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stages;
    use crate::model::evaluation::Objectives;

    const WHOLE: &str = "{
        spec_version: '1.0', timeframe: 10m,
        objectives: [
          {sli: time, displayName: Response time, pass: [{criteria: ['<=+10%', '<600']}], warning: [{criteria: ['<=800']}],
           weight: 2, key_sli: true},
          {sli: users, pass: null, key_sli: false}],
        total_score: {pass: '90%', warning: 75},
        comparison: {compare_with: several_results, include_result_with_score: pass_or_warn,
                     number_of_comparison_results: 5, aggregate_function: p95},
        prometheus: {url: 'http://prometheus:9090/under', queries: {time: 'rate(x{service=\"$SERVICE\"}[$DURATION_SECONDS])'}}}";

    fn shipyard(properties: &str) -> String {
        format!("  - {{name: a, sequences: [{{name: s, tasks: [{{name: evaluation, properties: {properties}}}]}}]}}")
    }

    #[test]
    fn what_is_read_well_is_what_is_judged_by() {
        let (read, problems) = stages(&shipyard(WHOLE));
        assert_eq!(problems, Vec::<String>::new());
        let task = &read.unwrap().stages[0].sequences[0].tasks[0];
        let objectives = Objectives::of(&task.properties).unwrap().unwrap();
        assert_eq!((objectives.objectives.len(), objectives.objectives[0].weight), (2, 2));
        assert_eq!((objectives.comparison.most(), objectives.timeframe.0.as_secs()), (5, 600));
        let (read, problems) = stages(&shipyard("{objectives: [{sli: a}]}"));
        assert_eq!(problems, Vec::<String>::new());
        let objectives = Objectives::of(&read.unwrap().stages[0].sequences[0].tasks[0].properties).unwrap().unwrap();
        assert_eq!((objectives.comparison.most(), objectives.total_score.pass.0), (1, 90.0));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let of = |rest: &str| format!("{{objectives: [{{sli: a, pass: [{{criteria: ['<1']}}]}}], {rest}}}");
        for (properties, expected) in [
            ("{objectives: []}".to_owned(), "properties.objectives: this is required"),
            ("{objectives: 1}".into(), "properties.objectives: must be a list"),
            ("{objectives: [{}]}".into(), "objectives[0].sli: this is required"),
            ("{objectives: [{sli: a}, {sli: a}]}".into(), "objectives[1].sli: there is another objective about `a`"),
            (
                "{objectives: [{sli: a, pas: []}]}".into(),
                "objectives[0].pas: the key `pas` is not known (did you mean `pass`?)",
            ),
            ("{objectives: [{sli: a, weight: 0}]}".into(), "objectives[0].weight: must be between 1 and"),
            ("{objectives: [{sli: a, pass: [{}]}]}".into(), "pass[0].criteria: this is required"),
            (
                "{objectives: [{sli: a, pass: [{criteria: ['<1', 'about 5']}]}]}".into(),
                "objectives[0].pass[0].criteria[1]: `about 5` is no criterion (such as",
            ),
            ("{objectives: [{sli: a, warning: [{criteria: [5]}]}]}".into(), "criteria[0]: must be text"),
            (of("spec_version: '2.0'"), "properties.spec_version: this version is not known"),
            (of("filter: {zone: 5}"), "properties.filter.zone: must be text"),
            (of(&format!("filter: {{zone: {}}}", "x".repeat(257))), "filter.zone: has a name, and a value of 256"),
            (of("timeframe: soon"), "properties.timeframe: must be a duration of a second or more"),
            (of("total_score: {warning: 5}"), "total_score.pass: this is required"),
            (of("total_score: {pass: most}"), "total_score.pass: must be between 0% and 100% (such as 90%)"),
            (of("total_score: {pass: 50, warning: 60}"), "total_score.warning: must not be more than `pass`"),
            (of("comparison: {compare_with: many}"), "comparison.compare_with: `many` is not supported"),
            (
                of("comparison: {number_of_comparison_results: 0}"),
                "number_of_comparison_results: must be between 1 and 100",
            ),
            (of("prometheus: {queries: {a: b}}"), "prometheus.url: this is required"),
            (of("prometheus: {url: 'prometheus:9090'}"), "prometheus.url: must begin with http:// or https://"),
            (of("prometheus: {url: 'http://me:secret@x'}"), "prometheus.url: must not have a user or a password"),
            (of("prometheus: {url: 'http://x/?a'}"), "prometheus.url: must be an address without"),
            (of("prometheus: {url: 'http://x', queries: {a: ''}}"), "prometheus.queries.a: a query has 1 to"),
        ] {
            let (read, problems) = stages(&shipyard(&properties));
            assert!(read.is_none(), "{properties}");
            let told = problems
                .iter()
                .any(|it| it.contains("error") && it.contains(expected) && it.contains("shipyard.yaml:"));
            assert!(told, "{properties}: {problems:?}");
        }
    }

    #[test]
    fn without_objectives_its_properties_are_for_whoever_does_it() {
        for (properties, warnings) in [
            ("{timeframe: whatever, more: 1}", 0),
            ("{objectives: null, more: 1}", 0),
            (
                "{objectives: [{sli: a, warning: [{criteria: ['<1']}]}], prometheus: {url: 'http://x', queries: {b: c}}}",
                2,
            ),
            ("{objectives: [{sli: a}], filter: {zone: north}}", 1),
            (
                "{objectives: [{sli: a}], filter: {zone: north}, prometheus: {url: 'http://x', queries: {a: 'b{z=\"$ZONE\"}'}}}",
                0,
            ),
        ] {
            let (read, problems) = stages(&shipyard(properties));
            assert!(read.is_some() && problems.len() == warnings, "{properties}: {problems:?}");
        }
    }
}
