"""Owns: a server for tests in other languages: `with_server.py [FLAG… --] COMMAND…` runs the command once it listens, with its
port in WEFT_PORT, and ends with the command's status; flags are the server's. The port takes TLS too: WEFT_CERTIFICATES is
a folder with `ca.crt`, and `client.crt` and `client.key` of the user `client`. Does not own: the server, which is that of
server.py."""

import os
import subprocess
import sys
import tempfile

from certificates import Authority
from server import Server

words = sys.argv[1:]
end = words.index("--") if "--" in words else None
flags, command = ([], words) if end is None else (words[:end], words[end + 1 :])
with tempfile.TemporaryDirectory() as folder:
    authority = Authority(folder)
    certificates = authority.flags(*authority.sign("server"))
    authority.sign("client")
    with Server(*flags, *certificates, "--tls-auth-clients-user", "CN") as running:
        with running.connect() as wire:
            assert wire.call("ACL", "SETUSER", "client", "on", "allkeys", "allcommands", "allchannels") == "+OK"
        environment = {**os.environ, "WEFT_PORT": str(running.port), "WEFT_CERTIFICATES": folder}
        status = subprocess.run(command, env=environment, check=False).returncode
sys.exit(status)
