//! Keys of the objectives of a shipyard's `evaluation` task: those of Keptn's SLO files, and where values come from.

use super::{Field, Shape, Type, any, flag, list, object, text, text_map, texts, word};
use crate::model::evaluation::Comparison;

/// How much one objective may count.
const HEAVIEST: i64 = 1_000_000;

pub(crate) const EVALUATION: Shape = Shape {
    fields: &[
        any("spec_version").doc("Of Keptn's SLO format: `1.0`."),
        text_map("filter").doc("What `$<key>` and `$<KEY>` stand for in queries."),
        list("objectives", &Type::Object(&OBJECTIVE)).required(),
        object("total_score", &TOTAL_SCORE).doc("What all objectives together have to reach."),
        object("comparison", &COMPARISON).doc("What relative criteria compare with."),
        text("timeframe").doc("The time until now that queries are about, such as `5m`."),
        object("prometheus", &PROMETHEUS).doc("What measures what nobody has given."),
    ],
};

const OBJECTIVE: Shape = Shape {
    fields: &[
        text("sli").required().doc("The indicator's name."),
        text("displayName").doc("Its name for people."),
        list("pass", &Type::Object(&CRITERIA)).doc("It passes if one group holds; without any, it is only shown."),
        list("warning", &Type::Object(&CRITERIA)).doc("Otherwise it counts half if one of these holds."),
        Field::new("weight", Type::Integer(1, HEAVIEST)).kept().doc("How much it counts; 1 if it is absent."),
        flag("key_sli").doc("Whether everything fails if it does."),
    ],
};
const CRITERIA: Shape =
    Shape { fields: &[texts("criteria").required().doc("All of them must hold: `<600`, `<=+10%`, `>=-5`.")] };
const TOTAL_SCORE: Shape = Shape {
    fields: &[
        Field::new("pass", Type::IntegerOrText).required().doc("Such as `90%`."),
        Field::new("warning", Type::IntegerOrText).kept().doc("Such as `75%`; without it, nothing is a warning."),
    ],
};
const COMPARISON: Shape = Shape {
    fields: &[
        word("compare_with", &["single_result", "several_results"]),
        word("include_result_with_score", &["all", "pass", "pass_or_warn"]),
        Field::new("number_of_comparison_results", Type::Integer(1, Comparison::MOST as i64)).kept(),
        word("aggregate_function", &["avg", "p50", "p90", "p95"]),
    ],
};
const PROMETHEUS: Shape = Shape {
    fields: &[
        text("url").required().doc("Where it answers, without `/api/v1`."),
        text_map("queries").doc("By indicator, in PromQL with $PROJECT, $STAGE, $SERVICE and $DURATION_SECONDS."),
    ],
};
