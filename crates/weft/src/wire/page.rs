//! The page `docs/benchmarks/wire.md` and the words of the HTML report: method, conclusion, contradictions.
//!
//! Owns the words. Every number in them is computed from the results, so that a page cannot say what its data do not.

use std::fmt::Write as _;

use super::results::{Cell, Results};
use super::seed::{self, CONTRADICTIONS, RESP, RESPB, VALKEY};
use super::tables;

pub(super) fn page(results: &Results) -> String {
    let mut page = String::from(
        "# What decoding a request costs: RESP against RESPB\n\nWritten by `weft wire --report \
         docs/benchmarks/data/wire.json --page docs/benchmarks/wire.md` from the raw data beside it; do not edit. \
         `make bench` measures again.\n\n## Method\n\n",
    );
    let list = |page: &mut String, lines: Vec<String>| {
        lines.iter().for_each(|line| {
            // Writing to a String cannot fail.
            let _ = writeln!(page, "- {line}");
        });
        page.push('\n');
    };
    list(&mut page, method(results));
    let mut table = |heading: &str, table: super::table::Table| {
        if !table.is_empty() {
            let _ = write!(page, "{heading} {}\n\n{}\n", table.title, table.markdown());
        }
    };
    page_tables(results, &mut table);
    page.push_str("## Conclusion\n\n");
    conclusion(results).iter().for_each(|text| {
        let _ = write!(page, "{text}\n\n");
    });
    page.push_str("## Where the founding documents contradict themselves\n\n");
    list(&mut page, contradictions());
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn page_tables(results: &Results, table: &mut impl FnMut(&str, super::table::Table)) {
    table("##", tables::summary(results));
    table("##", tables::targets(results));
    table("##", tables::split(results));
    for cell in &results.cells {
        table("##", tables::ladder(cell));
        table("###", tables::contestants(cell));
        // What is counted does not depend on the size; latencies out of cache are in the data.
        if cell.size_mb <= 1 {
            table("###", tables::heap(cell));
            table("###", tables::counts(cell));
            table("###", tables::latency(cell));
        }
    }
}

fn cell<'a>(results: &'a Results, workload: &str) -> Option<&'a Cell> {
    results.cells.iter().find(|cell| cell.workload == workload && cell.key_length != 20)
}

pub(super) fn method(results: &Results) -> Vec<String> {
    let machine = &results.machine;
    let passes = results.cells.first().map_or((0, 0), |cell| (cell.rounds, cell.passes));
    let mut lines = vec![
        format!(
            "Machine: {}, {} cores, {} kernel {}. Weft {}, {} build, one thread each; other programs ran on the \
             machine.",
            machine.cpu, machine.cores, machine.architecture, machine.kernel, results.version, machine.build
        ),
        "Workloads are those of the founding benchmark: `small` GET; `medium` SET of 50 bytes; `large` SET of \
         1,024 bytes; `mixed` GET 60, SET 12, DEL 5, MGET 6, JSON.SET 4, JSON.GET 6, BF.ADD 4, FT.SEARCH 3 in a \
         hundred. Keys are distinct, of 6 bytes as its sizes imply and of 20 as its text says; values are JSON, \
         words and hexadecimal. Both wires carry the same commands."
            .to_string(),
        "Valkey's parser is Valkey 9.1.2: its objects unmodified, built by its own Makefile with its own flags \
         and jemalloc, driven through `parseInputBuffer`, `freeClientArgv` and, where commands are looked up, \
         `prepareCommandQueue`. It makes an object for each argument; there is no way to call it without. Its \
         query buffer shows 16 KiB at a time, as one read gives it, and nothing is read from a socket. Commands \
         of modules are not in its table, so that their look-up fails at the same price."
            .to_string(),
        "Everyone does the same on what is decoded: the length, first byte and last byte of each argument are \
         added up, and each number that the wire carries in binary. RESPB carries an opcode where RESP carries a \
         name, and numbers where RESP carries digits; each contestant adds what its wire carries, and the \
         difference, which is known for a workload before the clock starts, is added after it has stopped. Then \
         all sums must be equal, and the run stops when one is not. RESP is not charged for turning digits into \
         numbers at any step, which is in its favour. Before the clock starts, every byte of every argument of \
         every contestant is compared with the workload's."
            .to_string(),
        format!(
            "CPU time is user and system time of getrusage: after a round for warming up, {} rounds of {} passes \
             at 1 MB, the contestants one after the other in each round; the median of rounds, with the lowest \
             and the highest. 1 MB lies in the second-level cache, 10 MB does not; both decode as many bytes in \
             all.",
            passes.0, passes.1
        ),
        "Instructions and misses are callgrind's (`--branch-sim=yes --cache-sim=yes`), the difference of three passes \
         and one. Its caches and its branch predictor are models, simpler than the machine's."
            .to_string(),
        "Heap is counted at the allocator, not taken from the resident size: in Weft by the program's own, in \
         Valkey by functions that the linker puts before jemalloc's in a second program, so that the one that is \
         timed has none of it. The peak is that of bytes in use in a pass: for Valkey its queue of parsed \
         commands, which holds what one read gave."
            .to_string(),
        "Latency is the clock's time for 64 commands, 10,000 samples; what two readings of the clock cost is \
         measured and taken off. The C drivers' clock is taken for the same."
            .to_string(),
        "`only reading the bytes` adds up all bytes of the stream as words: what memory allows.".to_string(),
    ];
    lines.extend(results.absent.iter().map(|line| format!("Not there in this run: {line}.")));
    lines
}

/// What RESPB does and does not buy.
pub(super) fn conclusion(results: &Results) -> Vec<String> {
    let mut texts = Vec::new();
    let of = |workload: &str, slow: &str, fast: &str| {
        cell(results, workload).and_then(|cell| cell.times(slow, fast))
    };
    let figures = |slow: &str, fast: &str| {
        let each = ["small", "medium", "large", "mixed"]
            .into_iter()
            .filter_map(|workload| Some(format!("{:.1} ({workload})", of(workload, slow, fast)?)));
        each.collect::<Vec<_>>().join(", ")
    };
    if of("small", VALKEY, RESPB).is_some() {
        texts.push(format!(
            "**The large figure is real, and it is mostly not the encoding.** Decoding RESPB, every field \
             checked, is faster than Valkey's parser by these factors: {}. But Weft's RESP decoder, on the same \
             bytes that Valkey reads, already is by {}: what most of the factor measures is making and freeing an \
             object for each argument, which Valkey's parser cannot leave out.",
            figures(VALKEY, RESPB),
            figures(VALKEY, RESP)
        ));
    }
    texts.push(format!(
        "**Encoding against encoding, RESPB is worth a factor of about two.** Against Weft's own RESP decoder, \
         neither side allocating: {}. With the command looked up, as every server must, it is more, since an \
         opcode is an index and a name is a hash and a comparison: {}.",
        figures(RESP, RESPB),
        figures("weft/resp/lookup", "weft/respb/lookup")
    ));
    texts.push(format!(
        "**A server that copies every argument into an object gets little of it.** With an allocation for each \
         argument on both wires the factor is {}; with one for the whole command {}. Who adopts RESPB and goes on \
         making objects should expect that, and not the figures above.",
        figures("weft/resp/objects", "weft/respb/objects"),
        figures("weft/resp/owned", "weft/respb/owned")
    ));
    if let (Some(small), Some(large)) = (cell(results, "small"), cell(results, "large")) {
        texts.push(format!(
            "**In a server it is nanoseconds.** On small commands the whole gain of RESPB over a good RESP \
             decoder is {:.0} ns a command, look-up included; a command that comes alone in its packet costs a \
             server some 5,000 ns of kernel time, and in a deep pipeline some 400 to 500 in all. RESPB's case \
             there is fewer system calls by multiplexing, which this benchmark does not measure.",
            small.cpu("weft/resp/lookup").unwrap_or(0.0) - small.cpu("weft/respb/lookup").unwrap_or(0.0)
        ));
        texts.push(format!(
            "**Bytes:** {:.1} % fewer for small, {:.1} % for large. It is the length lines and the name that go; \
             a value stays as long as it is. Some replies are longer than RESP's, by the channel \
             (spec/wire-sizes.md).",
            small.saved(),
            large.saved()
        ));
    }
    let missed: Vec<_> = seed::targets(results).into_iter().filter(|target| !target.is_reached()).collect();
    for target in missed.iter().filter(|target| target.reached.is_some()) {
        texts.push(format!(
            "**Not reached:** {}: {:.1}, where {:.1} was asked for.",
            target.what,
            target.reached.unwrap_or(0.0),
            target.least
        ));
    }
    if missed.iter().any(|target| target.what.starts_with("mixed: RESPB against")) {
        texts.extend(profile(results));
    }
    texts
}

/// Why RESPB gains less on mixed than on the others.
fn profile(results: &Results) -> Option<String> {
    let counts =
        |id: &str| cell(results, "mixed").and_then(|cell| cell.get(id)).and_then(|measured| measured.counts);
    let (resp, respb) = (counts(RESP)?, counts(RESPB)?);
    Some(format!(
        "The profile says why: on mixed, RESPB takes {:.0} instructions a command where RESP takes {:.0}, {:.1} \
         times fewer, but misses {:.2} branches where RESP misses {:.2}. Which command comes next, and how many \
         keys it has, is not to be foreseen on either wire, and a missed branch costs as much as some sixty \
         instructions.",
        respb.instructions,
        resp.instructions,
        resp.instructions / respb.instructions,
        respb.branch_misses,
        resp.branch_misses
    ))
}

pub(super) fn contradictions() -> Vec<String> {
    CONTRADICTIONS.iter().map(|text| text.to_string()).collect()
}
