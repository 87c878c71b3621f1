"""`scripts/bench-pages check`: a page that is not what its data give, data of no page, and a figure that is quoted wrongly are
found. Works on a copy of docs/benchmarks."""

import os
import shutil
import subprocess
import tempfile
import unittest

WEFT = os.environ["WEFT"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for name in ("docs/benchmarks", "scripts", "bench"):
            shutil.copytree(f"{ROOT}/{name}", f"{self.folder}/{name}")
        os.makedirs(f"{self.folder}/docs/adr", exist_ok=True)
        for name in ("README.md", "CHANGELOG.md", "docs/porting.md", "spec/for-maintainers.md"):
            os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
            shutil.copy(f"{ROOT}/{name}", f"{self.folder}/{name}")

    def run_pages(self, what):
        command = [f"{self.folder}/scripts/bench-pages", what, WEFT]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def change(self, name, edit):
        path = f"{self.folder}/{name}"
        with open(path, encoding="utf-8") as file:
            text = file.read()
        changed = edit(text)
        self.assertNotEqual(changed, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)

    def test_what_differs_is_found_and_written_again(self):
        # All at once: each run makes every page. That they are right before is what `make bench-check` says.
        self.change("docs/benchmarks/durability.md", lambda text: text.replace("| 0.", "| 1.", 1))
        self.change("docs/benchmarks/plots/programs.svg", lambda text: text.replace("</svg>", "<g/></svg>"))
        self.change("docs/benchmarks/claims.md", lambda text: text.replace("reached", "missed", 1))
        self.change("CHANGELOG.md", lambda text: text.replace("server_cpu_us -->0", "server_cpu_us -->9", 1))
        self.change("docs/benchmarks/README.md", lambda text: text.replace("(beside.md)", "(besides.md)"))
        with open(f"{self.folder}/docs/benchmarks/data/nobodys.json", "w", encoding="utf-8") as file:
            file.write("{}")
        done = self.run_pages("check")
        self.assertEqual(done.returncode, 1)
        for expected in (
            "docs/benchmarks/durability.md is not what its data give", "docs/benchmarks/plots/programs.svg is not what",
            "docs/benchmarks/claims.md is not what the pages give", "CHANGELOG.md: tls/pipeline-1/get/server_cpu_us is 0.",
            "docs/benchmarks/data/nobodys.json belongs to no page", "docs/benchmarks/README.md does not lead to beside.md",
        ):
            self.assertIn(expected, done.stderr)
        self.assertEqual(done.stderr.count(" is not what"), 3, done.stderr)
        os.remove(f"{self.folder}/docs/benchmarks/data/nobodys.json")
        self.change("docs/benchmarks/README.md", lambda text: text.replace("(besides.md)", "(beside.md)"))
        self.run_pages("write")
        done = self.run_pages("check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_data_that_are_gone_are_found(self):
        os.remove(f"{self.folder}/docs/benchmarks/data/server.json")
        self.change("docs/benchmarks/pages.json", lambda text: text.replace('"data/programs.json"', '"data/programs.json", "data/scripts.json"'))
        done = self.run_pages("check")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("data/server.json", done.stderr)


if __name__ == "__main__":
    unittest.main()
