//! `weft wire` placeholder
mod fold;
mod ladder;
mod stream;
use anyhow::Result;
#[derive(Debug, clap::Args)]
pub(crate) struct Options {}
pub(crate) fn run(_: &Options) -> Result<std::process::ExitCode> {
    use crate::workload::kind::Kind;
    for kind in Kind::ALL {
        let s = stream::Stream::generate(kind, 1_000_000, 6, 1)?;
        for wire in stream::Wire::ALL {
            for step in ladder::Step::ALL {
                let mut best = f64::MAX;
                for _ in 0..30 {
                    let t = std::time::Instant::now();
                    let seen = ladder::pass(wire, step, &s.on(wire).bytes);
                    best = best.min(t.elapsed().as_nanos() as f64 / s.commands as f64);
                    assert_eq!(seen.commands, s.commands);
                    if step != ladder::Step::Bytes { assert_eq!(seen.fold.wrapping_add(s.on(wire).correction), s.checksum); }
                    if seen.ids != 0 { assert_eq!(seen.ids, s.ids); }
                }
                println!("{} {} {} {:.1}", kind.name(), wire.name(), step.id(), best);
            }
        }
    }
    let _ = crate::heap::count(|| 1); Ok(std::process::ExitCode::SUCCESS)
}
