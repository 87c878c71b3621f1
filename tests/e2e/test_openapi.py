"""Owns: /v1/openapi.json before a validator of others, and what it describes before the server. Does not own: how it is
generated (crates/xtask)."""

import json
import unittest
import urllib.error
import urllib.parse
import urllib.request

import openapi_spec_validator
from server import REPLY_SECONDS, Server

# Values for places of a path, by the type that is described.
VALUES = {"integer": "1", "number": "1.5", "string": "text"}
# Commands that end the connection, the server or the data, or wait.
LEFT_OUT = {"shutdown", "quit", "debug", "failover", "replicaof", "slaveof", "client", "config", "acl", "migrate"}


class OpenApi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def ask(self, method, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", method=method)
        try:
            with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def document(self):
        status, body = self.ask("GET", "/v1/openapi.json")
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_a_validator_finds_no_fault(self):
        openapi_spec_validator.validate(self.document())

    def test_each_resource_that_is_described_is_there(self):
        document = self.document()
        count = 0
        for path, item in document["paths"].items():
            for method, operation in item.items():
                if method == "parameters" or "resources" not in operation["tags"]:
                    continue
                named = [reference["$ref"].split("/")[-1] for reference in item.get("parameters", [])]
                for name in named:
                    parameter = document["components"]["parameters"][name]
                    value = "1" if parameter["schema"].get("type") == "integer" else "text"
                    path = path.replace("{" + parameter["name"] + "}", value)
                if "Events" in json.dumps(operation["responses"]):
                    # Its answer has no end.
                    continue
                status, body = self.ask(method.upper(), path)
                # What is not stored is missed in words of its own.
                self.assertNotEqual(status, 405, path)
                self.assertNotIn("nothing at this path", body.decode(errors="replace"), path)
                count += 1
        self.assertGreater(count, 5)

    def test_each_read_that_is_described_is_known_to_the_server(self):
        count = 0
        for path, item in self.document()["paths"].items():
            name = path.split("/")[1]
            operation = item.get("get")
            if operation is None or {"wire", "resources"} & set(operation["tags"]) or name in LEFT_OUT:
                continue
            for parameter in item.get("parameters", []):
                if parameter["in"] == "path":
                    value = VALUES[parameter["schema"]["type"]]
                    path = path.replace("{" + parameter["name"] + "}", urllib.parse.quote(value))
            status, body = self.ask("GET", path)
            # It may not like the values, but must know the command and let it be read.
            said = body.decode()
            self.assertNotIn("unknown command", said, path)
            self.assertNotIn("unknown subcommand", said, path)
            self.assertNotIn("only reads", said, path)
            self.assertIn(status, (200, 400, 403, 404, 409, 501), f"{path}: {status} {said}")
            count += 1
        self.assertGreater(count, 80)

    def test_a_link_runs_no_script(self):
        for path in ("/eval_ro/return%201/0", "/evalsha_ro/0/0", "/fcall_ro/f/0"):
            status, body = self.ask("GET", path)
            self.assertEqual(status, 403, body)
        self.assertEqual(self.ask("POST", "/eval_ro/return%201/0"), (200, b'{"result":1}'))

    def test_the_page_for_people_needs_nothing_else(self):
        status, body = self.ask("GET", "/v1/docs")
        self.assertEqual(status, 200)
        page = body.decode()
        self.assertIn("<h3>ZADD</h3>", page)
        for foreign in ("http://", "https://", "<script", "src="):
            self.assertNotIn(foreign, page)


if __name__ == "__main__":
    unittest.main()
