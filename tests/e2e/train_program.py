#!/usr/bin/env python3
# The example's train.py by itself, without a cluster: trains, saves, resumes, reports progress.
# time-limit: 240
import os
import socket
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRAIN = os.path.join(TOP, "examples/train/train.py")
PYTHON = "/usr/bin/python3"


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def train(folder, *words, **environment):
    keep = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "NOTIFY_SOCKET")}
    result = subprocess.run([PYTHON, TRAIN, "--checkpoint", "c.pt", *words], cwd=folder, env={**keep, **environment},
                            capture_output=True, text=True, timeout=100, check=False)
    return result.returncode, result.stdout + result.stderr


def check(name, condition, output):
    if not condition:
        print(output)
    print(("ok " if condition else "not ok ") + name)
    return 0 if condition else 1


def main():
    if not os.path.exists(PYTHON) or not has_torch():
        print(f"skip train-program # {PYTHON} has no torch (package python3-torch)")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "small.conf"), "w", encoding="utf-8") as file:
            file.write("hidden: 16  # small\nsteps: 99\nmodel: of somebody else\ncheckpoint_every: 2\n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(os.path.join(folder, "notify"))
            status, out = train(folder, "--config", "small.conf", "--steps", "3",
                                NOTIFY_SOCKET=os.path.join(folder, "notify"))
            listener.setblocking(False)
            heard = ""
            while True:
                try:
                    heard += listener.recv(4096).decode() + "\n"
                except BlockingIOError:
                    break
        failed += check("trains-alone", status == 0 and "ranks met: world 1" in out and "step 3 loss " in out
                        and "step 4 " not in out, out)
        failed += check("reports-progress", all(line in heard.splitlines() for line in
                        ("READY=1", "X_TUTTI_WORLD_SIZE=1", "X_TUTTI_STEP=3", "X_TUTTI_CHECKPOINT=3")), heard)
        failed += check("leaves-no-part-file", sorted(os.listdir(folder)) == ["c.pt", "notify", "small.conf"],
                        str(os.listdir(folder)))
        status, out = train(folder, "--config", "small.conf", "--steps", "5")
        failed += check("resumes", status == 0 and "resumed at step 3" in out and "step 3 " not in
                        out.replace("at step 3 ", "") and "step 5 loss " in out, out)
        status, out = train(folder, "--config", "gone.conf")
        failed += check("names-a-missing-file", status != 0 and "gone.conf" in out, out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
