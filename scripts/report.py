"""Owns: what the reports in Python share: verdicts and plots, which `weft measure` makes, and the claims of a page. Does not own: any
page, measuring.

A report is rendered from its data alone: `bench-NAME page WEFT DATA OUT` writes OUT/PAGE.md, OUT/plots/PAGE.svg and
OUT/PAGE.claims.json. What is said of figures in rounds (the ratio paired by round, its interval, reached, open or missed) is said by
`weft measure`, so that it is said alike on every page; see docs/benchmarks/README.md."""

import json
import os
import subprocess
import sys


# How wide the interval of a ratio is that needs no more rounds, to each side, and how many times the least number there are at most.
SETTLED, ROUNDS_TIMES = 0.05, 3


def goes_on(weft, least, ours, theirs):
    """Whether a ratio needs a further round."""
    done = len(ours)
    if done < least or done >= least * ROUNDS_TIMES:
        return done < least
    answer = Report(weft, "report").ratio(ours, theirs)
    return max(answer["high"] - answer["value"], answer["value"] - answer["low"]) > SETTLED * answer["value"]


class Report:
    """A page on its way: its claims, and the program that judges them."""

    def __init__(self, weft, name):
        self.weft, self.name, self.claims = weft, name, []

    def _asked(self, what, question):
        command = [self.weft, "measure", what]
        done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{self.name}: {' '.join(command)}: {done.stderr.strip()}")
        return done.stdout

    def ratio(self, ours, theirs, claim=None, **goal):
        """The ratio of figures in rounds; `at_most` or `at_least` is the goal, `claim` an id and what is claimed."""
        return self._judged({"ours": ours, "theirs": theirs}, claim, goal)

    def mean(self, cases, claim=None, **goal):
        """The geometric mean of ratios, of which each case has its figures in rounds, ours and theirs."""
        return self._judged({"cases": cases}, claim, goal)

    def _judged(self, figures, claim, goal):
        question = figures | {name: value for name, value in goal.items() if value is not None}
        answer = json.loads(self._asked("ratios", [question]))[0]
        if claim:
            (name, limit), = ([(name, value) for name, value in goal.items() if value is not None] or [("", None)])
            self.claims.append({
                "id": claim[0], "claim": claim[1], "figure": f"{answer['value']:.2f}",
                "interval": f"{answer['low']:.2f}–{answer['high']:.2f}",
                "goal": f"{name.replace('_', ' ')} {limit:g}" if name else "", "verdict": answer["verdict"] or "",
            })
        return answer

    def figure(self, claim, figure, goal="", verdict=""):
        """A claim about a figure of a single run, which has no interval."""
        self.claims.append({"id": claim[0], "claim": claim[1], "figure": figure, "interval": "", "goal": goal, "verdict": verdict})

    def bars(self, title, unit, decimals, bars):
        """Bars as SVG: dictionaries of label, value, and as wanted low, high, group, goal."""
        return self._asked("bars", {"title": title, "unit": unit, "decimals": decimals, "bars": bars})

    def write(self, out, lines, plot=None):
        """Writes what has been made into the folder."""
        text = lines if isinstance(lines, str) else "\n".join(lines) + "\n"
        write(f"{out}/{self.name}.md", text)
        write(f"{out}/{self.name}.claims.json", json.dumps(self.claims, ensure_ascii=False, indent=1) + "\n")
        if plot:
            write(f"{out}/plots/{self.name}.svg", plot)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def ratio_bar(label, answer, goal=None, group=1):
    """A bar of a ratio with its interval."""
    return {"label": label, "value": answer["value"], "low": answer["low"], "high": answer["high"], "goal": goal, "group": group}


def two_threads(program, what, rounds, seconds):
    """What the engine's example `two_threads` counts: requests a second by one thread, by two, and by two that share nothing."""
    command = [program, what, str(rounds), str(seconds)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    one, two, apart = zip(*(list(map(float, line.split())) for line in lines))
    return {"one": one, "two": two, "apart": apart}


# What every page says of its ratios.
METHOD = [
    "A ratio is the median of the rounds' ratios, both figures of a round measured right behind each other, with 95 % of the",
    "medians of rounds drawn again; a goal is *reached* or *missed* only where the whole interval is on one side of it,",
    "otherwise *open* ([how](README.md#verdicts)).",
]
