//! A line of the index of claims. Owns its form.

use serde::{Deserialize, Serialize};

use crate::verdict::{Goal, Ratio};

/// Something that a page says with a figure: the index of claims has a line for each, and what README and CHANGELOG
/// say of it is compared with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What it is found by, below the name of its page: `get-16/resp`.
    pub id: String,
    /// What is claimed, with its unit.
    pub claim: String,
    /// The figure, as it may be written elsewhere.
    pub figure: String,
    /// 95 % of what another run would give, where that is known.
    pub interval: String,
    /// What was asked for.
    pub goal: String,
    /// *reached*, *open* or *missed*, where something was asked for.
    pub verdict: String,
}

impl Claim {
    /// That of a ratio.
    pub fn of_ratio(
        id: impl Into<String>,
        claim: impl Into<String>,
        ratio: Ratio,
        goal: Option<Goal>,
    ) -> Claim {
        Claim {
            id: id.into(),
            claim: claim.into(),
            figure: format!("{:.2}", ratio.value),
            interval: format!("{:.2}–{:.2}", ratio.low, ratio.high),
            goal: goal.map_or_else(String::new, |goal| goal.to_string()),
            verdict: goal.map_or_else(String::new, |goal| goal.verdict(ratio).to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_says_what_its_interval_allows() {
        let ratio = Ratio { value: 0.5, low: 0.45, high: 0.62 };
        let claim = Claim::of_ratio("a", "A", ratio, Some(Goal::AtMost(0.6)));
        assert_eq!((&*claim.figure, &*claim.interval, &*claim.goal), ("0.50", "0.45–0.62", "at most 0.6"));
        assert_eq!(claim.verdict, "open");
        assert_eq!(Claim::of_ratio("a", "A", ratio, None).verdict, "");
    }
}
