//! Runs the body of each fuzz target over its committed seeds.

#[path = "../../../tests/fuzz/seeded.rs"]
mod seeded;
#[path = "../../../tests/fuzz/src/lib.rs"]
#[allow(dead_code, unreachable_pub)]
mod targets;

/// Fewest seeds of a target.
const SEEDS_MIN: usize = 12;

fn run(target: &str) {
    let (_, body) = targets::TARGETS.iter().find(|(name, _)| *name == target).expect("it is one");
    seeded::run(target, SEEDS_MIN, *body);
}

macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { run(stringify!($name)); })*

        #[test]
        fn every_target_runs_here() {
            let names: Vec<&str> = targets::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

targets!(resp_request, resp_reply, respb_request, respb_reply, respb_differential);
