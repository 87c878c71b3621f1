"""Owns: running every file of tests in this folder, several at once: most wait for servers and nodes of clusters, and the machine has
nothing to do meanwhile. What each prints stands together. Does not own: what runs with a server that is there (`run`).

`files.py [NAME...]` runs those files, such as `test_tls`, or all."""

import concurrent.futures
import pathlib
import subprocess
import sys
import time

# More at once, and what looks at time in them would see its neighbours.
AT_ONCE = 3
HERE = pathlib.Path(__file__).parent


def run(name):
    begun = time.monotonic()
    ended = subprocess.run([sys.executable, "-B", "-m", "unittest", "-v", name], cwd=HERE, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    print(f"     {name}: {time.monotonic() - begun:.1f} s\n{ended.stdout}", flush=True)
    return name if ended.returncode else None


def main():
    # Those of gateways begin, since they wait most and take longest.
    names = sys.argv[1:] or sorted((file.stem for file in HERE.glob("test_*.py")),
                                   key=lambda name: (not name.startswith("test_gateway"), name))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        failed = [name for name in pool.map(run, names) if name]
    for name in failed:
        print(f"failed: {name}")
    sys.exit(1 if failed else 0)


main()
