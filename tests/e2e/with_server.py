"""Owns: a server for tests in other languages: `with_server.py [FLAG… --] COMMAND…` runs the command once it listens, with its
port in WEFT_PORT, and ends with the command's status; flags are the server's. Does not own: the server, which is that of
server.py."""

import os
import subprocess
import sys

from server import Server

words = sys.argv[1:]
end = words.index("--") if "--" in words else None
flags, command = ([], words) if end is None else (words[:end], words[end + 1 :])
with Server(*flags) as running:
    status = subprocess.run(command, env={**os.environ, "WEFT_PORT": str(running.port)}, check=False).returncode
sys.exit(status)
