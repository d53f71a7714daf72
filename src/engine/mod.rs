//! What a run does next. Pure: values in, values out.
