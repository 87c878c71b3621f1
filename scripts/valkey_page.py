"""Owns: the page docs/benchmarks/valkey-respb.md, made of its data alone. Does not own: measuring (bench-valkey), verdicts (report.py)."""

import statistics

from report import METHOD

# The seed's tables: what it says of requests a second, the factor, and what it says of latency. Means, twelve cores of another machine.
SEED = {
    "GET, 128 clients, pipeline 128, 1 KB": ("2.1M → 4.8M", 4.8 / 2.1, 3.30 / 5.32),
    "SET, 128 clients, pipeline 128, 1 KB": ("2.3M → 1.9M", 1.9 / 2.3, 2.09 / 3.86),
    "GET, 50 clients, pipeline 1, 1 KB": ("177K → 184K", 1.04, 0.96),
    "GET, 50 clients, pipeline 10, 1 KB": ("982K → 1.27M", 1.29, 0.79),
    "GET, 50 clients, pipeline 50, 1 KB": ("1.88M → 3.64M", 1.94, 0.52),
    "GET, 50 clients, pipeline 100, 1 KB": ("1.90M → 4.12M", 2.16, 0.64),
    "GET, 50 clients, pipeline 200, 1 KB": ("2.02M → 4.57M", 2.26, 0.89),
}


def median(runs, field):
    return statistics.median(run[field] for run in runs)


def ratio(report, runs, field, claim=None, **goal):
    """RESPB over RESP3, paired by round."""
    resp, respb = ([run[field] for run in each] for each in runs)
    return report.ratio(respb, resp, claim=claim, **goal)


def loads(report, result):
    lines = [
        "## By command and pipeline",
        "",
        "× is RESPB over RESP3: of CPU less is better, of requests a second more."
        + (f" Other programs kept {result['busy']} cores busy when this began." if result.get("busy", 0) > 0.1 else ""),
        "",
        "| requests | CPU µs RESP3 | RESPB | × | a second RESP3 | RESPB | × | p50 ms RESP3 | RESPB | p99 RESP3 | RESPB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    better = worse = 0
    for title, runs in result["cells"].items():
        cpu, rate = ratio(report, runs, "server_us"), ratio(report, runs, "rps")
        better += cpu["high"] < 1
        worse += cpu["low"] > 1
        cells = [title]
        for field, form, answer in (("server_us", "%.3f", cpu), ("rps", "%.0f", rate), ("p50_ms", "%.2f", None), ("p99_ms", "%.2f", None)):
            cells += [form % median(each, field) for each in runs] + ([answer["text"]] if answer else [])
        lines.append("| " + " | ".join(cells) + " |")
    count = len(result["cells"])
    lines += [
        "",
        f"Of these {count} rows RESPB costs less CPU in {better} and more in {worse} with the whole interval on that side; in {count - better - worse} the",
        "rounds do not say.",
    ]
    return lines


def seed(report, result):
    lines = [
        "## The founding proposal's table",
        "",
        "Its figures are of a fork and a benchmark of its own, on twelve cores of another machine; what can be compared is the factor.",
        "*Reached*: RESPB brings at least the factor of requests a second that was proposed; of latency, at most the factor.",
        "",
        "| | proposed, a second | × | here × | | CPU here × | proposed, latency × | p50 here × | |",
        "|---|---|---:|---:|---|---:|---:|---:|---|",
    ]
    verdicts = []
    for title, (rates, factor, latency) in SEED.items():
        runs = result["cells"][title]
        name = title.lower().replace(", 1 kb", "").replace(" clients", "").replace("pipeline ", "").replace(", ", "/")
        rate = ratio(report, runs, "rps", (f"rate/{name}", f"requests a second inside Valkey, {title}, RESPB over RESP3"), at_least=round(factor, 2))
        cpu = ratio(report, runs, "server_us")
        p50 = ratio(report, runs, "p50_ms", (f"p50/{name}", f"p50 inside Valkey, {title}, RESPB over RESP3"), at_most=round(latency, 2))
        verdicts += [rate["verdict"], p50["verdict"]]
        lines.append(f"| {title} | {rates} | {factor:.2f} | {rate['text']} | {rate['verdict']} | {cpu['text']} | {latency:.2f} | {p50['text']} | {p50['verdict']} |")
    lines += ["", f"Of these {len(verdicts)} factors " + ", ".join(f"{verdicts.count(name)} are {name}" for name in ("reached", "open", "missed")) + "."]
    return lines


def channels(report, result):
    lines = ["## 2,000 logical clients, one GET of 64 bytes each at a time", "",
             "| way | CPU µs | a second | p50 ms | p99 |", "|---|---:|---:|---:|---:|"]
    for title, runs in result["logical"].items():
        lines.append("| %s | %.2f | %.0f | %.2f | %.2f |" % (title, *(median(runs[0], f) for f in ("server_us", "rps", "p50_ms", "p99_ms"))))
    names = list(result["logical"])
    cpu = {name: [run["server_us"] for run in runs[0]] for name, runs in result["logical"].items()}
    alone = report.ratio(cpu[names[1]], cpu[names[0]], ("channels/alone", "CPU inside Valkey of connections of RESPB over connections of RESP3"))
    own, pipelined = (report.ratio(cpu[names[3]], cpu[name], (f"channels/{short}", f"CPU inside Valkey of channels over {name}"))
                      for name, short in ((names[0], "connections"), (names[2], "pipelines")))
    lines += [
        "",
        f"Channels take {own['text']} of the CPU of 2,000 connections, and {pipelined['text']} of that of 4 connections whose client sends the same",
        "commands in pipelines: where clients can share a pipeline, that is what most of it is; channels give each a state of its own.",
        f"2,000 connections of RESPB take {alone['text']} of the CPU of as many of RESP3.",
    ]
    return lines


def threads(report, result):
    lines = ["## With `io-threads 2`", "",
             "CPU of all the server's threads, on both cores, which the clients have too; RESPB is read and written by the main thread.", "",
             "| requests | RESP3 µs | RESPB | × |", "|---|---:|---:|---:|"]
    for title, runs in result["threads"].items():
        resp, respb = (median(each, "server_us") for each in runs)
        lines.append(f"| {title} | {resp:.3f} | {respb:.3f} | {ratio(report, runs, 'server_us')['text']} |")
    return lines


def memory(_, result):
    lines = ["## Memory", "", "`used_memory` for each client of those that have asked once and wait, after 12 s:", "",
             "| a client as a | bytes |", "|---|---:|"]
    return lines + [f"| {name} | {value:.0f} |" for name, value in result["memory"].items()]


def instructions(report, result):
    cells = result["instructions"]
    ways = list(next(iter(cells.values())))
    count = {title: {way: statistics.median(each[way]["runs"]) for way in ways} for title, each in cells.items()}
    lines = [
        "## What RESP could have without a new protocol",
        "",
        "Instructions a request in the server's own code, without the kernel's, counted by callgrind: one connection, fixed work, every",
        "reply compared; medians of three. The second column is RESP3 with a parser made for this comparison",
        "([`fast_resp.c`](../../integrations/valkey/measure/fast_resp.c)): it compares eight bytes at a time under a mask, has commands and their",
        "names in a cache, and makes the same objects as RESPB; of mistakes and rare forms Valkey's own parser is asked, and streams of",
        "all kinds get the same answers from both. No client has to change for it.",
        "",
        "| request | RESP3 | better parser | × | RESPB | × | RESPB over the better parser |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    less = fewer = 0
    for title, each in count.items():
        plain, better, respb = (each[way] for way in ways)
        less, fewer = less + (respb < better), fewer + (respb < plain)
        if title.endswith("pipeline 100"):
            name = title.split(",")[0].lower().replace(" ", "-", 1).replace(" ", "")
            for way, value in (("better", better / plain), ("respb", respb / plain), ("left", respb / better)):
                said = {"better": "RESP3 with a better parser over RESP3", "respb": "RESPB over RESP3", "left": "RESPB over RESP3 with a better parser"}[way]
                report.figure((f"instructions/{name}/{way}", f"instructions inside Valkey, {title}, {said}"), f"{value:.2f}")
        lines.append(f"| {title} | {plain:,.0f} | {better:,.0f} | {better / plain:.2f} | {respb:,.0f} | {respb / plain:.2f} | {respb / better:.2f} |")
    lines += [
        "",
        f"RESPB takes fewer instructions than plain RESP3 in {fewer} of {len(count)} rows, and fewer than the better parser in {less}. Valkey answers",
        "in RESP3, which is translated for RESPB, so that decoding is all that it can save here, and decoding is what the better parser",
        "saves too. Channels are what a parser cannot give.",
    ]
    for title in ("GET 16 B, pipeline 100", "GET 1 KB, pipeline 100", "SET 1 KB, pipeline 100"):
        most = [[f"`{name}` {value:.0f}" for name, value in list(cells[title][way]["functions"].items())[:8]] for way in ways]
        lines += ["", f"Where they are, {title}, the most of each:", "", "| " + " | ".join(ways) + " |", "|---|---|---|"]
        lines += ["| " + " | ".join(row) + " |" for row in zip(*most)]
    return lines


PARTS = {"loads": [loads, seed, channels], "threads": [threads], "memory": [memory], "instructions": [instructions]}


def page(report, results):
    """The lines of the page."""
    lines = [
        "# RESPB inside Valkey",
        "",
        "<!-- Generated by `make bench-valkey`. -->",
        "",
        "What RESPB gains where everything else is equal: one `valkey-server` 9.1.2 with RESPB built in",
        "([`integrations/valkey`](../../integrations/valkey/README.md)), one generator, RESP3 and RESPB in turns.",
        f"{results['rounds']} rounds of {results['seconds']:g} s, server on one core, clients on another, {results['machine']}; columns are medians.",
        *METHOD,
    ]
    for name, parts in PARTS.items():
        if name in results["parts"]:
            for part in parts:
                lines += ["", *part(report, results["parts"][name])]
    lines += [
        "",
        "Raw data, every run: [`data/valkey-respb.json`](data/valkey-respb.json).",
        "",
        "<!-- not run: fetches and builds Valkey, measures for minutes -->",
        "```sh",
        "make bench-valkey",
        "make bench-valkey PARTS=memory   # or " + ", ".join(name for name in PARTS if name != "memory"),
        "```",
    ]
    return lines
