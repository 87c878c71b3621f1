"""Owns: that the lines in Valkey's files are put where they belong, and that a hook which fits no more is named. Needs no server;
with the source that scripts/valkey-driver has fetched, that all fit it."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
INSERT = os.path.join(HERE, "..", "insert")
CACHE = os.environ.get("WEFT_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "weft")
SOURCE = os.path.join(CACHE, "valkey-9.1.2", "source")


def insert(*words):
    return subprocess.run([sys.executable, INSERT, *words], capture_output=True, text=True, check=False)


def hooked():
    """A source that has what is hooked, and nothing else, from insertions.txt."""
    files = {}
    with open(os.path.join(HERE, "..", "insertions.txt"), encoding="utf-8") as file:
        for line in file:
            key, _, rest = line.rstrip("\n").partition(" ")
            if key == "file":
                places, scope = files.setdefault(rest, {}), None
            elif key == "in":
                scope = rest
                places.setdefault(scope, [])
            elif key in ("after", "before", "replace"):
                places.setdefault(scope, [])
                line = "    " + (rest[:-3] + "x" if rest.endswith("...") else rest)
                if line not in places[scope] and line.strip() != scope:
                    places[scope].append(line)
    for name, places in files.items():
        text = []
        for scope, lines in places.items():
            text += ([scope] if scope else []) + lines + (["}"] if scope else [])
        files[name] = "\n".join(text) + "\n"
    return files


class Insertions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = folder.name
        for name, text in hooked().items():
            os.makedirs(os.path.dirname(os.path.join(self.source, name)), exist_ok=True)
            with open(os.path.join(self.source, name), "w", encoding="utf-8") as file:
                file.write(text)

    def read(self, name):
        with open(os.path.join(self.source, name), encoding="utf-8") as file:
            return file.read()

    def test_lines_stand_where_they_belong(self):
        done = insert(self.source)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = self.read("src/networking.c")
        self.assertIn("int canParseCommand(client *c) {\n    if (respbStops(c)) return 0;\n    if (c->flag.close_after_reply", text)
        self.assertIn("    addReplyMapLen(c, 6 + respbHelloEntries(c, &respb_hello) +", text)
        self.assertIn("    respbHelloDone(c, &respb_hello);\n}", text)

    def test_what_does_not_fit_is_named_and_nothing_is_changed(self):
        path = os.path.join(self.source, "src/timeout.c")
        with open(path, "w", encoding="utf-8") as file:
            file.write("int clientsCronHandleTimeout(client *c, mstime_t now_ms) {\n    freeClientLater(c);\n}\n")
        before = self.read("src/networking.c")
        done = insert(self.source)
        self.assertEqual(done.returncode, 1)
        self.assertIn("src/timeout.c: idle clients: why they end: `freeClient(c);` is not there", done.stderr)
        self.assertEqual(self.read("src/networking.c"), before)

    def test_the_document_has_the_numbers(self):
        """docs/porting.md says what the insertions and our files cost in lines, and README what the insertions do."""
        said = insert("--count").stdout
        counted = dict(re.findall(r"^(respb_\w+\.[ch]): (\d+) lines", said, re.M))
        added, changed = re.search(r"^all of Valkey's files: (\d+) added, (\d+) changed", said, re.M).groups()
        files = len(re.findall(r"^src/", said, re.M))
        with open(os.path.join(HERE, "..", "..", "..", "docs", "porting.md"), encoding="utf-8") as file:
            text = file.read()
        rows = re.findall(r"^\| ([^|]*) \| (\d+) \|$", text, re.M)
        steps = re.findall(r"^\| ([^|]*) \| (\d+) \| (\d+) \|$", text, re.M)
        self.assertCountEqual(steps, re.findall(r"^step (.*): (\d+) added, (\d+) changed$", said, re.M))
        wanted = {"added to Valkey's files": int(added), "changed there": int(changed), "files of Valkey that they are in": files}
        for label, number in rows:
            names = re.findall(r"`(respb_\w+\.[ch])`", label)
            expected = sum(int(counted.pop(name)) for name in names) if names else wanted.pop(label)
            self.assertEqual(int(number), expected, label)
        self.assertEqual((counted, wanted), ({}, {}), "not in the table")
        with open(os.path.join(HERE, "..", "..", "..", "README.md"), encoding="utf-8") as file:
            self.assertIn(f"{int(added) + int(changed)} lines in its files", file.read())

    @unittest.skipUnless(os.path.isdir(SOURCE), "Valkey's source is not there: `make test-valkey` fetches it")
    def test_all_fit_valkey(self):
        done = insert("--check", SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
