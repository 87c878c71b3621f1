//! What is asked of Weft over the workloads: `bench/goals.toml`. Owns the names of the goals.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::bench::workloads::toml::{self, Value};

/// The goals; each is a ratio to Valkey's figure and an upper bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Goals {
    /// Each workload at pipeline 16 of which less than half of Valkey's CPU is the kernel's.
    pub(super) cpu_16_each: f64,
    /// The others, over the stub.
    pub(super) cpu_16_each_over_stub: f64,
    /// Geometric means.
    pub(super) cpu_16_mean_resp: f64,
    pub(super) cpu_16_mean_respb: f64,
    pub(super) cpu_1_each: f64,
    pub(super) cpu_1_mean_resp: f64,
    pub(super) cpu_1_mean_respb: f64,
    pub(super) p99_mean: f64,
    /// What no interval may lie wholly above.
    pub(super) p99_each: f64,
    pub(super) cpu_evicting: f64,
}

impl Goals {
    pub(super) fn read(path: &Path) -> Result<Goals> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
        Goals::parse(&text).with_context(|| name)
    }

    fn parse(text: &str) -> Result<Goals> {
        let mut goals = Goals::default();
        let mut places: Vec<(&str, &mut f64)> = vec![
            ("cpu-16-each", &mut goals.cpu_16_each),
            ("cpu-16-each-over-stub", &mut goals.cpu_16_each_over_stub),
            ("cpu-16-mean-resp", &mut goals.cpu_16_mean_resp),
            ("cpu-16-mean-respb", &mut goals.cpu_16_mean_respb),
            ("cpu-1-each", &mut goals.cpu_1_each),
            ("cpu-1-mean-resp", &mut goals.cpu_1_mean_resp),
            ("cpu-1-mean-respb", &mut goals.cpu_1_mean_respb),
            ("p99-mean", &mut goals.p99_mean),
            ("p99-each", &mut goals.p99_each),
            ("cpu-evicting", &mut goals.cpu_evicting),
        ];
        for (name, item) in toml::parse(text)?.iter().flat_map(|table| &table.entries) {
            let Some(at) = places.iter().position(|(known, _)| known == name) else {
                let known: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
                bail!("line {}: {name} is no goal that is still to be set: {}", item.line, known.join(", "));
            };
            let (_, place) = places.remove(at);
            *place = match item.value {
                Value::Float(ratio) => ratio,
                Value::Integer(ratio) => ratio as f64,
                ref other => bail!("line {}: {name}: a ratio is expected, not {}", item.line, other.kind()),
            };
        }
        if let Some((name, _)) = places.first() {
            bail!("{name} is missing");
        }
        Ok(goals)
    }
}

#[cfg(test)]
impl Goals {
    /// The repository's.
    pub(super) fn ours() -> Goals {
        Goals::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/goals.toml")).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_is_set_once() {
        let goals = Goals::ours();
        assert_eq!((goals.cpu_16_each, goals.p99_mean), (0.6, 1.0));
        for (text, expected) in [
            ("cpu-17 = 1", "line 1: cpu-17 is no goal that is still to be set: cpu-16-each, "),
            ("cpu-16-each = 1\n", "cpu-16-each-over-stub is missing"),
            ("cpu-16-each = \"x\"", "line 1: cpu-16-each: a ratio is expected, not a text"),
        ] {
            assert!(Goals::parse(text).unwrap_err().to_string().starts_with(expected), "{text}");
        }
    }
}
