//! The programs whose instructions `tests/instructions.rs` counts under callgrind, as one, which is linked once:
//! `server_costs http WIRE-WORKLOAD REPEATS` or `server_costs log WIRE-PIPELINE REPEATS`.

mod http;
mod log;
#[path = "../../../engine/examples/support/worker.rs"]
mod worker;

fn main() {
    let mut args = std::env::args().skip(1);
    let program = args.next();
    let args: Vec<String> = args.collect();
    match program.as_deref() {
        Some("http") => http::run(&args),
        Some("log") => log::run(&args),
        _ => panic!("usage: server_costs http|log …"),
    }
}
