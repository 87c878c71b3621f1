"""Owns: /metrics before readers of others: the parser of OpenMetrics, promtool, and redis_exporter itself in front of the same
server, name by name; that the alerts and the dashboard ask for what there is. Does not own: the figures."""

import json
import pathlib
import re
import subprocess
import unittest
import urllib.request

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as prometheus
from server import REPLY_SECONDS, START_SECONDS, Server, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPENMETRICS = "application/openmetrics-text"

# What redis_exporter tells of itself, and not of the server.
OF_THE_EXPORTER = re.compile(r"^redis_exporter_|^redis_target_scrape_|^redis_last_key_groups_|^(go|process|promhttp)_")
# A field of INFO that it takes for one of KeyDB: keys whose members have times.
MISTAKEN = {"redis_db_keys_cached"}
# What is another at each look.
RESTLESS = re.compile(r"_seconds|cpu|memory|allocator|mem_|net_|processed|uptime|eventloop|connections_received|instantaneous|client|latenc|commands|fork|defrag")


def tools():
    said = subprocess.run([ROOT / "scripts/debian-tools", "promtool", "redis_exporter"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return dict(line.split("=", 1) for line in said.splitlines())


def fetch(port, path="/metrics", accept="*/*"):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(text):
    """Families by name: kind, and the value of each sample by its name and labels."""
    families = {}
    for family in prometheus.text_string_to_metric_families(text):
        values = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in family.samples}
        families[family.name] = (family.type, values)
    return families


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tools = tools()
        cls.server = Server("--latency-tracking-info-percentiles", "50 99 99.9")
        with cls.server.connect() as wire:
            for words in (
                ("SET", "k", "v"),
                ("SET", "t", "v", "EX", "1000"),
                ("GET", "k"),
                ("LPUSH", "k", "x"),
                ("PROGRAM", "SET", "one", '{"steps":[{"return":1}]}'),
                ("PROGRAM", "RUN", "one"),
                # An error of a script may begin with anything.
                ("EVAL", r"""return redis.error_reply('A"\\B text')""", "0"),
            ):
                wire.call(*words)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def test_the_parser_of_openmetrics_reads_it(self):
        kind, text = fetch(self.server.port, accept=f"{OPENMETRICS};version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
        self.assertTrue(kind.startswith(OPENMETRICS), kind)
        families = list(openmetrics.text_string_to_metric_families(text))
        self.assertGreater(len(families), 150)
        names = [family.name for family in families]
        self.assertEqual(len(names), len(set(names)), "a family stands there twice")

    def test_what_is_stored_is_text(self):
        _, text = fetch(self.server.port)
        families = samples(text)
        self.assertEqual(families["weft_program_runs"][1][("weft_program_runs_total", (("program", "one"),))], 1)
        self.assertEqual(families["redis_errors"][1][("redis_errors_total", (("err", 'A"\\B'),))], 1)

    def test_promtool_reads_it(self):
        promtool = self.tools.get("promtool") or self.skipTest("promtool is missing: scripts/debian-tools says why")
        _, text = fetch(self.server.port)
        check = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        said = check.stdout + check.stderr
        # 3: it finds names that it would not have chosen. Those of redis_exporter are not ours to choose.
        self.assertIn(check.returncode, (0, 3), said)
        ours = [line for line in said.splitlines() if line.startswith("weft_")]
        self.assertEqual(ours, [], said)

    def test_the_alerts_fire_when_they_must(self):
        promtool = self.tools.get("promtool") or self.skipTest("promtool is missing: scripts/debian-tools says why")
        folder = ROOT / "packaging/prometheus"
        for words in (["check", "rules", "weft.rules.yml"], ["test", "rules", "weft.rules.test.yml"]):
            check = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_alerts_and_dashboard_ask_for_what_there_is(self):
        _, text = fetch(self.server.port)
        there = {name for _, values in samples(text).values() for name, _ in values} | set(re.findall(r"^# TYPE (\S+)", text, re.M))
        dashboard = json.loads((ROOT / "packaging/grafana/weft.json").read_text())
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
        asked.append((ROOT / "packaging/prometheus/weft.rules.yml").read_text())
        names = set(re.findall(r"\b(?:redis|weft)_\w+", " ".join(asked)))
        self.assertGreater(len(names), 40)
        # Without TLS there is no certificate.
        self.assertEqual(names - there - {"weft_tls_certificate_seconds"}, set())

    def test_the_guide_says_what_each_alert_means(self):
        rules = (ROOT / "packaging/prometheus/weft.rules.yml").read_text()
        alerts = set(re.findall(r"alert: (\w+)", rules))
        table = [line.split("|")[1] for line in (ROOT / "docs/operations.md").read_text().splitlines() if line.startswith("| Weft")]
        self.assertEqual(alerts, set(re.findall(r"\w+", " ".join(table))))

    def test_names_are_those_of_redis_exporter(self):
        program = self.tools.get("redis_exporter") or self.skipTest("redis_exporter is missing: scripts/debian-tools says why")
        port = free_port()
        words = [program, "-redis.addr", f"redis://127.0.0.1:{self.server.port}", "-web.listen-address", f"127.0.0.1:{port}"]
        exporter = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            # It says so when it listens.
            for line in exporter.stderr:
                if "Providing metrics" in line:
                    break
            theirs = self.scrape(port)
        finally:
            exporter.terminate()
            exporter.communicate(timeout=START_SECONDS)
        ours = samples(fetch(self.server.port)[1])
        faults, compared = [], 0
        for name, (kind, values) in theirs.items():
            if OF_THE_EXPORTER.search(name) or name in MISTAKEN:
                continue
            compared += 1
            if name not in ours:
                faults.append(f"{name} is missing")
                continue
            our_kind, our_values = ours[name]
            if our_kind != kind:
                faults.append(f"{name} is a {our_kind} and not a {kind}")
            for sample, value in values.items():
                labels = dict(sample[1])
                # The exporter asks in its own way: what it has run differs.
                if "client|" in labels.get("cmd", ""):
                    continue
                if sample not in our_values:
                    faults.append(f"{sample} is missing")
                elif our_values[sample] != value and not RESTLESS.search(name):
                    faults.append(f"{sample} is {our_values[sample]} and not {value}")
        print(f"{compared} families of redis_exporter compared, {len(ours)} told")
        self.assertEqual(faults, [])
        self.assertGreater(compared, 100)

    def scrape(self, port):
        try:
            return samples(fetch(port)[1])
        except OSError:
            # It says that it listens a moment before it does.
            return self.scrape(port)


if __name__ == "__main__":
    unittest.main()
