//! Owns: the text of Prometheus (0.0.4) and of OpenMetrics (1.0.0). Does not own: what is told.
//!
//! ```text
//! # HELP redis_commands_total Calls of a command
//! # TYPE redis_commands_total counter
//! redis_commands_total{cmd="get"} 21
//! ```
//!
//! In OpenMetrics a counter's name ends with `_total`, and the quantiles of a summary are at most 1. redis_exporter has
//! names that say otherwise; they are kept, since dashboards ask for them, and such a family is `unknown` there.

use std::fmt::{Display, Write as _};

use crate::asked::Form;

/// Their content types.
pub const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// See there.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Form {
    /// What its content type is.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => PROMETHEUS,
            Self::OpenMetrics => OPENMETRICS,
        }
    }
}

/// What a family is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    /// Always 1: its labels are what it tells.
    Info,
    Summary,
    Histogram,
}

pub(super) struct Page {
    form: Form,
    text: String,
}

/// One that is being written.
pub(super) struct Family<'p, 'n> {
    page: &'p mut Page,
    name: &'n str,
    help: &'n str,
}

impl Page {
    pub(super) fn new(form: Form) -> Self {
        Self { form, text: String::with_capacity(64 << 10) }
    }
    pub(super) fn family<'p, 'n>(&'p mut self, name: &'n str, kind: Kind, help: &'n str) -> Family<'p, 'n> {
        let is_open = self.form == Form::OpenMetrics;
        let (base, word) = match kind {
            Kind::Counter if is_open => match name.strip_suffix("_total") {
                Some(base) => (base, "counter"),
                None => (name, "unknown"),
            },
            Kind::Counter => (name, "counter"),
            Kind::Gauge if is_open && name.ends_with("_total") => (name, "unknown"),
            Kind::Summary if is_open => (name, "unknown"),
            Kind::Gauge | Kind::Info => (name, "gauge"),
            Kind::Summary => (name, "summary"),
            Kind::Histogram => (name, "histogram"),
        };
        self.head(base, help, word);
        Family { page: self, name, help }
    }
    fn head(&mut self, name: &str, help: &str, word: &str) {
        // Writing into a String cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {word}\n");
    }
    pub(super) fn end(mut self) -> String {
        if self.form == Form::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_, '_> {
    pub(super) fn value(&mut self, value: impl Display) {
        self.labelled(&[], value);
    }
    pub(super) fn labelled(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.sample("", labels, value);
    }
    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let text = &mut self.page.text;
        text.push_str(self.name);
        text.push_str(suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            text.push_str(name);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {value}");
    }
    /// One command's histogram: for each bound how many are not above it, what all are together, how many there are.
    /// OpenMetrics wants them side by side.
    pub(super) fn histogram(
        &mut self,
        label: (&str, &str),
        buckets: &[(u64, u64)],
        (sum, count): (u64, u64),
    ) {
        let is_open = self.page.form == Form::OpenMetrics;
        for (bound, count) in buckets {
            let bound = if is_open { format!("{bound}.0") } else { bound.to_string() };
            self.sample("_bucket", &[label, ("le", &bound)], count);
        }
        self.sample("_bucket", &[label, ("le", "+Inf")], count);
        self.sample("_sum", &[label], sum);
        self.sample("_count", &[label], count);
    }
    /// What the values of a summary are together, and how many there are, by command.
    pub(super) fn sums<'c>(&mut self, sums: impl Iterator<Item = (&'c str, u64, u64)> + Clone) {
        for (suffix, second) in [("_sum", false), ("_count", true)] {
            if self.page.form == Form::OpenMetrics {
                let name = format!("{}{suffix}", self.name);
                self.page.head(&name, self.help, "unknown");
            }
            for (command, sum, count) in sums.clone() {
                self.sample(suffix, &[("cmd", command)], if second { count } else { sum });
            }
        }
    }
}

/// A label's value is text in quotes.
fn push_escaped(text: &mut String, value: &str) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(form: Form) -> String {
        let mut page = Page::new(form);
        page.family("a_total", Kind::Counter, "Of a").labelled(&[("x", "\"\\\n")], 1);
        page.family("b", Kind::Counter, "Of b").value(2.5);
        page.family("c_total", Kind::Gauge, "Of c").value(-1);
        let mut summary = page.family("d", Kind::Summary, "Of d");
        summary.labelled(&[("cmd", "get"), ("quantile", "50")], 7);
        summary.sums([("get", 8, 9)].into_iter());
        let mut histogram = page.family("e", Kind::Histogram, "Of e");
        histogram.histogram(("cmd", "get"), &[(1, 2), (4, 3)], (5, 3));
        page.end()
    }

    #[test]
    fn both_forms_are_as_their_readers_have_them() {
        let text = page(Form::Prometheus);
        for part in [
            "# HELP a_total Of a\n# TYPE a_total counter\na_total{x=\"\\\"\\\\\\n\"} 1\n",
            "# TYPE b counter\nb 2.5\n",
            "# TYPE c_total gauge\nc_total -1\n",
            "# TYPE d summary\nd{cmd=\"get\",quantile=\"50\"} 7\nd_sum{cmd=\"get\"} 8\nd_count{cmd=\"get\"} 9\n",
            "e_bucket{cmd=\"get\",le=\"4\"} 3\ne_bucket{cmd=\"get\",le=\"+Inf\"} 3\ne_sum{cmd=\"get\"} 5\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let text = page(Form::OpenMetrics);
        for part in [
            "# HELP a Of a\n# TYPE a counter\na_total{x=",
            "# TYPE b unknown\nb 2.5\n",
            "# TYPE c_total unknown\n",
            "# TYPE d unknown\nd{cmd=\"get\",quantile=\"50\"} 7\n# HELP d_sum Of d\n# TYPE d_sum unknown\nd_sum{",
            "e_bucket{cmd=\"get\",le=\"4.0\"} 3\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
    }
}
