"""Owns: a server for tests in other languages: `with_server.py COMMAND…` runs the command once it listens, with its port in
WEFT_PORT, and ends with the command's status. Does not own: the server, which is that of server.py."""

import os
import subprocess
import sys

from server import Server

with Server() as running:
    status = subprocess.run(sys.argv[1:], env={**os.environ, "WEFT_PORT": str(running.port)}, check=False).returncode
sys.exit(status)
