"""Owns: /v1/openapi.json before a validator of others, and what it describes before the server. Does not own: how it is
generated (crates/xtask)."""

import json
import pathlib
import re
import unittest
import urllib.error
import urllib.parse
import urllib.request

import jsonschema
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

    def ask(self, method, path, body=None):
        """The status, the body and the type of the answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", method=method, data=body)
        try:
            with urllib.request.urlopen(request, timeout=REPLY_SECONDS) as answer:
                return answer.status, answer.read(), answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as error:
            return error.code, error.read(), error.headers.get("Content-Type", "")

    def document(self):
        status, body, _ = self.ask("GET", "/v1/openapi.json")
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_a_validator_finds_no_fault(self):
        openapi_spec_validator.validate(self.document())

    def test_each_path_of_the_guide_is_described(self):
        guide = pathlib.Path(__file__).parents[2] / "docs" / "http.md"
        paths = self.document()["paths"]
        # `/v1/db/N/keys/KEY?…` is the path /v1/db/{db}/keys/{key}; a table may leave out the path before another's end.
        named = {
            re.sub(r"/(NAME|name|sell)(?=/|$)", "/{name}", re.sub(r"/(KEY|key)$", "/{key}", re.sub(r"^/v1/db/[N0]", "/v1/db/{db}", path)))
            for path in re.findall(r"(/v1/[\w/{}.-]*[\w}])", guide.read_text(encoding="utf-8"))
        }
        named = {re.sub(r"^(/v1/db/{db}/keys/)\w+$", r"\1{key}", path) for path in named} - {"/v1/db/{db}"}
        self.assertGreater(len(named), 15)
        self.assertEqual({path for path in named if path not in paths}, set())
        for path in ("/", "/pipeline", "/multi-exec", "/subscribe/{channel}", "/psubscribe/{pattern}", "/monitor", "/healthz", "/readyz", "/metrics", "/console"):
            self.assertIn(path, paths)

    def test_answers_are_what_is_described(self):
        document = self.document()
        asked = [
            ("PUT", "/v1/db/{db}/keys/{key}", "/v1/db/0/keys/s", b"v", 201),
            ("PUT", "/v1/db/{db}/keys/{key}", "/v1/db/0/keys/s", b"v", 204),
            ("GET", "/v1/db/{db}/keys/{key}", "/v1/db/0/keys/s", None, 200),
            ("PATCH", "/v1/db/{db}/keys", "/v1/db/0/keys?key64=cw==", b"w", 204),
            ("GET", "/v1/db/{db}/keys", "/v1/db/0/keys", None, 200),
            ("GET", "/v1/db/{db}/keys", "/v1/db/0/keys?key64=cw", None, 200),
            ("GET", "/v1/db/{db}/keys", "/v1/db/0/keys?limit=x", None, 400),
            ("POST", "/v1/db/{db}/mset", "/v1/db/0/mset", b'{"a":1,"b":{"base64":"/w=="}}', 204),
            ("POST", "/v1/db/{db}/mget", "/v1/db/0/mget", b'["a","b","none"]', 200),
            ("DELETE", "/v1/db/{db}/keys/{key}", "/v1/db/0/keys/s", None, 204),
            ("GET", "/v1/db/{db}/keys/{key}", "/v1/db/0/keys/s", None, 404),
            ("PUT", "/v1/programs/{name}", "/v1/programs/p", b'{"steps": [{"return": 1}]}', 201),
            ("GET", "/v1/programs/{name}", "/v1/programs/p", None, 200),
            ("POST", "/v1/programs/{name}/run", "/v1/programs/p/run", b"[]", 200),
            ("GET", "/v1/programs", "/v1/programs", None, 200),
            ("GET", "/v1/triggers", "/v1/triggers", None, 200),
            ("POST", "/", "/", b'["PING"]', 200),
            ("POST", "/pipeline", "/pipeline", b'[["PING"],["NONE"]]', 200),
            ("GET", "/get/{key}", "/get/a", None, 200),
            ("POST", "/lpush/{key}/{element}", "/lpush/a/x", b"", 400),
            ("GET", "/v1/docs", "/v1/docs", None, 200),
            ("GET", "/console", "/console", None, 200),
        ]
        for method, path, target, sent, wanted in asked:
            status, body, kind = self.ask(method, target, sent)
            self.assertEqual(status, wanted, f"{target}: {body}")
            responses = document["paths"][path][method.lower()]["responses"]
            described = responses.get(str(status), responses["default"])
            described = document["components"]["responses"][described["$ref"].split("/")[-1]]
            if status == 204 or body == b"":
                continue
            schema = described["content"][kind.split(";")[0]]["schema"]
            if kind == "application/json":
                # References are looked up in the whole document.
                whole = {"$ref": "#/schema", "schema": schema, "components": document["components"]}
                jsonschema.Draft202012Validator(whole).validate(json.loads(body))

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
                for reference in operation.get("parameters", []) + item.get("parameters", []):
                    parameter = document["components"]["parameters"][reference["$ref"].split("/")[-1]]
                    if parameter["in"] == "query" and parameter["required"] and "?" not in path:
                        path += f"?{parameter['name']}=dGV4dA=="
                if "Events" in json.dumps(operation["responses"]):
                    # Its answer has no end.
                    continue
                status, body, _ = self.ask(method.upper(), path)
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
            status, body, _ = self.ask("GET", path)
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
            status, body, _ = self.ask("GET", path)
            self.assertEqual(status, 403, body)
        self.assertEqual(self.ask("POST", "/eval_ro/return%201/0")[:2], (200, b'{"result":1}'))

    def test_the_page_for_people_needs_nothing_else(self):
        status, body, _ = self.ask("GET", "/v1/docs")
        self.assertEqual(status, 200)
        page = body.decode()
        self.assertIn("<h3>ZADD</h3>", page)
        for foreign in ("http://", "https://", "<script", "src="):
            self.assertNotIn(foreign, page)


if __name__ == "__main__":
    unittest.main()
