"""A cluster for scripts in Python: the counterpart of lib.sh. Used by tests/e2e, tests/docs, bench.

    with Cluster("--nodes", "2") as cluster:
        print(cluster.run("squeue").stdout)
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("TUTTI_BIN", os.path.join(TOP, "build/release/bin"))


class Cluster:
    """Comes up with the options given in a fresh state directory; down, and its files gone, on exit."""

    def __init__(self, *options, state=None):
        self.options = list(options)
        self.work = tempfile.mkdtemp(prefix="tutti-e2e.")
        os.chmod(self.work, 0o755)  # jobs run as their users; the state inside has its own modes
        self.state = state or os.path.join(self.work, "state")
        self.environment = {k: v for k, v in os.environ.items() if k not in ("SLURM_CONF", "TUTTI_STATE")}
        self.environment["TUTTI_STATE"] = self.state
        self.environment["PATH"] = BIN + ":" + self.environment.get("PATH", "/usr/bin:/bin")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that __exit__ runs

    def run(self, *words, check=True, limit=120, **more):
        """The finished process; with check, an exit status other than 0 raises with its output."""
        result = subprocess.run(list(words), env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, timeout=limit, check=False, **more)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: exit status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def pids(self):
        """name -> pid, as DIR/pids says."""
        try:
            with open(os.path.join(self.state, "pids"), encoding="utf-8") as file:
                return {line.split()[0]: int(line.split()[1]) for line in file if len(line.split()) == 2}
        except FileNotFoundError:
            return {}

    def __enter__(self):
        try:
            self.run("tutti", "up", "--state", self.state, *self.options)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, _error, _trace):
        if kind is not None and kind is not KeyboardInterrupt:
            self.show_logs()
        try:
            self.run("tutti", "down", "--state", self.state, "--no-requeue", "--yes")
        except (RuntimeError, subprocess.TimeoutExpired, OSError):
            self.end_processes()
        shutil.rmtree(self.work, ignore_errors=True)

    def end_processes(self):
        """What does not answer, by the pids that the cluster wrote down itself."""
        for pid in self.pids().values():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"tutti" in file.read():
                        os.kill(pid, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                continue

    def show_logs(self):
        for path in sorted(glob.glob(os.path.join(self.state, "log/*"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                print(f"--- {os.path.basename(path)}\n" + "".join(file.readlines()[-40:]))


def wait_for(seconds, condition):
    """Polls until condition() is true and returns its value; raises TimeoutError otherwise."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"not so after {seconds} s")
        time.sleep(0.05)
