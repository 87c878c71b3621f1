//! `weft measure`: what the scripts behind `make bench-…` ask of the one library of verdicts and plots, so that they
//! have none of their own. Questions are JSON on standard input, answers on standard output.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use weft_measure::plot::{Bar, bars};
use weft_measure::verdict::{self, Goal, Ratio, Verdict};

/// Answer what scripts ask about figures in rounds; JSON on standard input
#[derive(Debug, Subcommand)]
pub(crate) enum Options {
    /// A list of {"ours": […], "theirs": […]}, {"values": […]} or {"cases": [[ours, theirs], …]}, each with "at_most"
    /// or "at_least" where something is asked for: ratio, interval, verdict
    Ratios,
    /// {"title", "unit", "decimals", "bars": [{"label", "value", "low", "high", "group", "goal"}, …]}: bars as SVG
    Bars,
}

/// A question about figures.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    #[serde(default)]
    ours: Vec<f64>,
    #[serde(default)]
    theirs: Vec<f64>,
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    cases: Vec<(Vec<f64>, Vec<f64>)>,
    at_most: Option<f64>,
    at_least: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Answer {
    #[serde(flatten)]
    ratio: Ratio,
    /// Whether the interval is within ±5 %.
    close: bool,
    verdict: Option<Verdict>,
    /// `0.48 (0.46–0.51)`
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plot {
    title: String,
    unit: String,
    decimals: usize,
    bars: Vec<PlotBar>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlotBar {
    label: String,
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    #[serde(default)]
    group: usize,
    goal: Option<f64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut text = String::new();
    std::io::stdin().lock().read_to_string(&mut text).context("standard input")?;
    let answer = match options {
        Options::Ratios => ratios(&text)?,
        Options::Bars => plot(&text)?,
    };
    std::io::stdout().lock().write_all(answer.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn ratios(text: &str) -> Result<String> {
    let asks: Vec<Ask> = serde_json::from_str(text).context("not a list of questions")?;
    let answers: Result<Vec<Answer>> = asks
        .iter()
        .enumerate()
        .map(|(index, ask)| answer(ask).with_context(|| format!("question {index}")))
        .collect();
    Ok(serde_json::to_string(&answers?)? + "\n")
}

fn answer(ask: &Ask) -> Result<Answer> {
    let ratio = match (&ask.values[..], &ask.cases[..]) {
        ([], []) => verdict::paired(&ask.ours, &ask.theirs),
        (values, []) => verdict::interval(values),
        ([], cases) => {
            let cases: Vec<_> = cases.iter().map(|(ours, theirs)| (&ours[..], &theirs[..])).collect();
            verdict::geometric(&cases)
        }
        _ => bail!("values and cases exclude each other"),
    };
    let Some(ratio) = ratio else { bail!("each round must have both figures, and there must be one") };
    ensure!(ask.at_most.is_none() || ask.at_least.is_none(), "at_most and at_least exclude each other");
    let goal = ask.at_most.map(Goal::AtMost).or(ask.at_least.map(Goal::AtLeast));
    let verdict = goal.map(|goal| goal.verdict(ratio));
    Ok(Answer { ratio, close: ratio.is_close(), verdict, text: ratio.to_string() })
}

fn plot(text: &str) -> Result<String> {
    let plot: Plot = serde_json::from_str(text).context("not a plot")?;
    let of = |bar: PlotBar| Bar {
        label: bar.label,
        value: bar.value,
        spread: bar.low.zip(bar.high),
        group: bar.group,
        goal: bar.goal,
    };
    Ok(bars(&plot.title, &plot.unit, plot.decimals, &plot.bars.into_iter().map(of).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_answered_in_order() {
        let text = r#"[{"ours": [1, 1, 1], "theirs": [2, 2, 2], "at_most": 0.5},
            {"values": [3, 3, 3], "at_least": 4}, {"cases": [[[1], [4]], [[1], [1]]]}]"#;
        let answers: serde_json::Value = serde_json::from_str(&ratios(text).unwrap()).unwrap();
        assert_eq!((&answers[0]["value"], &answers[0]["verdict"]), (&0.5.into(), &"reached".into()));
        assert_eq!(answers[0]["text"], "0.50 (0.50–0.50)");
        assert_eq!((&answers[1]["high"], &answers[1]["verdict"]), (&3.0.into(), &"missed".into()));
        assert_eq!((&answers[2]["value"], &answers[2]["verdict"]), (&0.5.into(), &serde_json::Value::Null));
    }

    #[test]
    fn what_cannot_be_answered_says_which_question() {
        for (text, expected) in [
            (r#"[{"values": [1]}, {"ours": [1], "theirs": []}]"#, "question 1"),
            (r#"[{"values": [1], "cases": [[[1], [1]]]}]"#, "exclude"),
            (r#"[{"values": [1], "at_most": 1, "at_least": 1}]"#, "exclude"),
            (r#"[{"theirs": [1], "our": [1]}]"#, "not a list of questions"),
        ] {
            let error = format!("{:#}", ratios(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn bars_are_drawn() {
        let svg =
            plot(r#"{"title": "T", "unit": "µs", "decimals": 2, "bars": [{"label": "a", "value": 1.5}]}"#);
        assert!(svg.unwrap().contains(">1.50 µs</text>"));
    }
}
