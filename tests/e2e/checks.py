"""Test cases of scripts in Python: what lib.sh is to those in bash.

    with Checks(cluster) as t:
        t.equal("runs", "hi", t.out("srun echo hi"))
"""
import os
import re
import select
import signal
import subprocess
import sys
import time

from cluster import wait_for

FINAL = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT")


class Checks:
    """Prints a line for each case, and runs commands in a folder of its own beside the cluster."""

    def __init__(self, cluster, folder="jobs"):
        self.cluster, self.failed = cluster, 0
        self.folder = os.path.join(cluster.work, folder)
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)

    def that(self, name, condition, detail=""):
        if not condition:
            self.failed += 1
            print(detail)
        print(("ok " if condition else "not ok ") + name, flush=True)
        return bool(condition)

    def equal(self, name, want, seen):
        return self.that(name, want == seen, f"wanted: {want!r}\nseen:   {seen!r}")

    def match(self, name, regex, text):
        return self.that(name, re.search(regex, text, re.M), f"no line matches {regex!r} in:\n{text}")

    def refused(self, name, command, regex, status=1):
        """Exits with that status, prints nothing on stdout and an error that matches."""
        done = self.sh(command)
        self.that(name, done.returncode == status and not done.stdout and re.search(regex, done.stderr, re.M),
                  f"{command}: exit status {done.returncode} (wanted {status}), wanted on stderr: {regex}\n"
                  f"stdout: {done.stdout}\nstderr: {done.stderr}")

    def section(self, function):
        """One part of a script: what it throws is one failed case, and the next part runs."""
        try:
            function(self)
        except Exception as error:  # pylint: disable=broad-except
            self.that(function.__name__.replace("_", "-"), False, f"{type(error).__name__}: {error}")

    # ---- commands

    def sh(self, command, limit=60, **more):
        return subprocess.run(["bash", "-c", command], env=dict(self.cluster.environment, **more), cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit, check=False)

    def out(self, command, limit=60, **more):
        """stdout of a command that succeeds, without the last newline."""
        done = self.sh(command, limit, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout.rstrip("\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), 0o755)
        return name

    def text(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    # ---- jobs

    def submit(self, words):
        return int(self.out(f"sbatch --parsable {words}").split(";")[0])

    def states(self, job):
        """The state words of all rows that sacct has for the job, elements of an array apart."""
        return [line.split()[0] for line in self.out(f"sacct -X -n -P -o State -j {job}").split("\n") if line]

    def ended(self, job, seconds=30):
        """Waits for the job's end; its state."""
        def over():
            states = self.states(job)
            return states if states and all(s in FINAL for s in states) else None
        try:
            states = wait_for(seconds, over)
        except TimeoutError:
            raise TimeoutError(f"job {job} is {self.states(job)} after {seconds} s\n" +
                               self.sh(f"tutti why {job}").stdout) from None
        return states[0] if len(set(states)) == 1 else ",".join(states)

    def running(self, job, seconds=20):
        wait_for(seconds, lambda: self.out(f"squeue -h -j {job} -t R -o %i"))

    def has_line(self, name, line, seconds=20):
        """Waits until the file has that line."""
        try:
            wait_for(seconds, lambda: line in self.text(name).split("\n"))
        except TimeoutError:
            raise TimeoutError(f"{name} has no line {line!r} after {seconds} s:\n{self.text(name)}") from None


class Terminal:
    """A command on a pseudo-terminal."""

    def __init__(self, checks, command):
        self.pid, self.fd = os.forkpty()
        if self.pid == 0:
            os.chdir(checks.folder)
            os.execvpe("bash", ["bash", "-c", command], dict(checks.cluster.environment, PS1="$ "))
        self.seen = ""

    def read(self, regex, seconds=20):
        """Reads until what was printed matches; returns the match and forgets what was before."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(regex, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            if time.monotonic() > end or not self.more(end):
                raise TimeoutError(f"the terminal shows no {regex!r}: {self.seen!r}")

    def more(self, end):
        if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def write(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=20):
        """The exit status; what was still printed is in `seen`."""
        deadline = time.monotonic() + seconds
        while self.more(deadline):
            pass
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise TimeoutError(f"the command on the terminal goes on: {self.seen!r}")


def main(run, *options):
    """`run(checks)` on a cluster that comes up with these options; the exit status."""
    from cluster import Cluster  # pylint: disable=import-outside-toplevel
    with Cluster(*options) as cluster:
        checks = Checks(cluster)
        run(checks)
    sys.exit(1 if checks.failed else 0)
