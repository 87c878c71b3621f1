"""Owns: a server for tests in other languages: `with_server.py [FLAG… --] COMMAND…` runs the command once it listens, with its
port in WEFT_PORT, and ends with the command's status; flags are the server's. The port takes TLS too: WEFT_CERTIFICATES is
a folder with `ca.crt`, and `client.crt` and `client.key` of the user `client`. With WEFT_GATEWAY=one or =cluster it is a gateway
in front of a server or of a cluster. Does not own: the server, which is that of server.py."""

import contextlib
import os
import subprocess
import sys
import tempfile

from certificates import Authority
from nodes import Cluster, program
from server import Server

words = sys.argv[1:]
end = words.index("--") if "--" in words else None
flags, command = ([], words) if end is None else (words[:end], words[end + 1 :])
with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as behind:
    command_of = "serve"
    if gateway := os.environ.get("WEFT_GATEWAY"):
        command_of = "gateway"
        if gateway == "cluster":
            if not program():
                print("with_server.py: there is no valkey-server for a cluster: scripts/valkey-driver builds it")
                sys.exit(0)
            cluster = Cluster()
            behind.callback(cluster.stop)
            flags += ["--to", cluster.url()]
        else:
            flags += ["--to", f"redis://127.0.0.1:{behind.enter_context(Server()).port}"]
    authority = Authority(folder)
    certificates = authority.flags(*authority.sign("server"))
    authority.sign("client")
    with Server(*flags, *certificates, "--tls-auth-clients-user", "CN", command=command_of) as running:
        with running.connect() as wire:
            assert wire.call("ACL", "SETUSER", "client", "on", "allkeys", "allcommands", "allchannels") == "+OK"
        environment = {**os.environ, "WEFT_PORT": str(running.port), "WEFT_CERTIFICATES": folder}
        status = subprocess.run(command, env=environment, check=False).returncode
sys.exit(status)
