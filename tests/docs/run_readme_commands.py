#!/usr/bin/env python3
"""Runs what the documents tell people to run.

A fenced block opened by ```sh run is one test case (FILE:LINE); it runs under `bash -euo pipefail` and must
exit 0. The blocks of one document run in order, in one folder that holds a copy of examples/, on a
fresh state directory with a cluster of four virtual nodes.
"""
# time-limit: 900
import os
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/e2e"))
from cluster import BIN, Cluster  # noqa: E402

BLOCK_SECONDS = 120


def blocks(text):
    """(line number, commands) of each runnable block."""
    return [(text.count("\n", 0, m.start()) + 1, m.group(1))
            for m in re.finditer(r"^```sh run\n(.*?)^```$", text, re.M | re.S)]


def documents():
    paths = ["README.md"]
    for folder, _, files in os.walk(os.path.join(TOP, "docs")):
        paths += [os.path.relpath(os.path.join(folder, f), TOP) for f in files if f.endswith(".md")]
    found = []
    for path in sorted(paths):
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            found.append((path, blocks(file.read())))
    return [(path, parts) for path, parts in found if parts]


def run_block(cluster, folder, commands):
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=cluster.environment,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=BLOCK_SECONDS, check=False)
        return done.returncode == 0, done.stdout + f"exit status {done.returncode}"
    except subprocess.TimeoutExpired as expired:
        return False, (expired.stdout or b"").decode("utf-8", "replace") + f"not done after {BLOCK_SECONDS} s"


def main():
    if not os.path.exists(os.path.join(BIN, "tutti")):
        print(f"not ok documents (no {BIN}/tutti: build first)")
        return 1
    failed = 0
    for path, parts in documents():
        try:
            with Cluster("--nodes", "4") as cluster:
                folder = os.path.join(cluster.work, "folder")
                shutil.copytree(os.path.join(TOP, "examples"), os.path.join(folder, "examples"))
                for line, commands in parts:
                    good, output = run_block(cluster, folder, commands)
                    if not good:
                        failed += 1
                        print(commands + "\n--- said:\n" + output)
                        cluster.show_logs()
                    print(f"{'ok' if good else 'not ok'} {path}:{line}", flush=True)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{error}\nnot ok {path} (no cluster)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
