//! The programs whose instructions `tests/instructions.rs` counts under callgrind, as one, which is linked once:
//! `engine_costs requests WIRE-COMMAND REPEATS` or `engine_costs cliffs [CONDITION [COMMAND]]`.

mod cliffs;
mod requests;
#[path = "../support/worker.rs"]
mod worker;

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next();
    let args: Vec<String> = args.collect();
    match program.as_deref() {
        Some("requests") => requests::run(&args),
        Some("cliffs") => cliffs::run(&args),
        _ => panic!("usage: engine_costs requests|cliffs …"),
    }
}
