#!/usr/bin/env python3
# Kills the controller hundreds of times while jobs are submitted, started, run and completed: nothing
# that was acknowledged is lost, every script runs once, and nothing is left over.
# time-limit: 300
"""TUTTI_CRASHES=N kills (default 200), TUTTI_SEED=S repeats a run's choices."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

from cluster import BIN, Cluster, wait_for

CRASHES = int(os.environ.get("TUTTI_CRASHES", "200"))
SEED = int(os.environ.get("TUTTI_SEED", str(int(time.time()))))
POINTS = ("before_commit", "after_commit", "after_effects")
LIMIT_S = int(os.environ.get("TUTTI_CRASH_SECONDS", "100")) if CRASHES <= 200 else 10**6


def verdict(name, good, text=""):
    print(text + ("\n" if text else "") + ("ok " if good else "not ok ") + name, flush=True)
    return good


def end(pid):
    """kill -9, and the process is really gone (or was already)."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    def gone():
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                # Its first thread may be dead while others still hold its files.
                return file.read().rsplit(")", 1)[1].split()[0] == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1
        except (FileNotFoundError, ProcessLookupError):
            return True
    wait_for(10, gone)


class Submitter(threading.Thread):
    """Submits until told to stop; remembers every number that sbatch printed and what is expected."""

    def __init__(self, cluster, seed):
        super().__init__()
        self.cluster, self.random, self.stopping = cluster, random.Random(seed), False
        self.jobs, self.strange = {}, []

    def run(self):
        while not self.stopping:
            code, nodes = self.random.choice((0, 0, 3)), self.random.choice((1, 1, 1, 2))
            pause = self.random.choice((0, 0, 0.05))
            script = f"#!/bin/sh\necho run >>{self.cluster.work}/runs/$SLURM_JOB_ID\nsleep {pause}\nexit {code}\n"
            done = subprocess.run(["sbatch", "--parsable", "-o", "/dev/null", f"-N{nodes}"], input=script, text=True,
                                  capture_output=True, env=self.cluster.environment, check=False)
            number = done.stdout.strip()
            if done.returncode == 0 and number.isdigit():
                if number in self.jobs:
                    self.strange.append(f"number {number} was printed twice")
                self.jobs[number] = code
            elif "contact" not in done.stderr.lower() and "answer" not in done.stderr.lower():
                self.strange.append(f"sbatch: {done.returncode}: {done.stdout}{done.stderr}")
            time.sleep(0.06)


def controller(cluster, crash_at=None):
    environment = dict(cluster.environment)
    if crash_at:
        environment["TUTTI_CRASH_AT"] = crash_at
    with open(os.path.join(cluster.state, "log/controller.crash.out"), "ab") as log:
        return subprocess.Popen([os.path.join(BIN, "tutti"), "controller", "--state", cluster.state],
                                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def crash_controllers(cluster, chance):
    """How many died, and of which cause."""
    causes, begun = {}, time.monotonic()
    end(cluster.pids()["controller"])
    for _ in range(CRASHES):
        if time.monotonic() - begun > LIMIT_S:
            break
        point = chance.choice(POINTS + (None, None))
        process = controller(cluster, f"{point}:{chance.randint(1, 40)}" if point else None)
        try:
            status = process.wait(timeout=chance.uniform(0.03, 0.3) if point is None else 1.0)
            if status != -signal.SIGKILL:
                with open(os.path.join(cluster.state, "log/controller.crash.out"), encoding="utf-8") as log:
                    raise RuntimeError(f"the controller ended by itself: status {status}: {log.read()[-2000:]}")
        except subprocess.TimeoutExpired:
            point = None
            process.kill()
            process.wait()
        causes[point or "any instant"] = causes.get(point or "any instant", 0) + 1
    cluster.run("tutti", "up", "--state", cluster.state)
    return causes


def records(cluster):
    out = cluster.run("sacct", "-X", "-n", "-P", "-D", "-S", "now-1days", "-o", "JobID,State,ExitCode").stdout
    result = {}
    for line in out.splitlines():
        job, state, code = line.split("|")
        result.setdefault(job, []).append((state.split()[0], code))
    return result


def after_crashes(cluster, submitter):
    begun = time.monotonic()
    try:
        wait_for(120, lambda: not cluster.run("squeue", "-h").stdout.strip())
    except TimeoutError:
        return verdict("everything-ends", False, cluster.run("squeue").stdout)
    print(f"the rest took {time.monotonic() - begun:.1f} s", flush=True)
    seen = records(cluster)
    lost = [job for job in submitter.jobs if job not in seen]
    good = verdict("every-printed-number-is-known", not lost, f"lost: {lost}" if lost else "")
    good &= verdict("no-number-twice", not submitter.strange, "\n".join(submitter.strange))
    wrong, runs = [], []
    for job, code in submitter.jobs.items():
        last = seen.get(job, [("?", "?")])[-1]
        wanted = ("COMPLETED", "0:0") if code == 0 else ("FAILED", f"{code}:0")
        if last != wanted:
            wrong.append(f"job {job}: {seen.get(job)}, wanted {wanted}")
        try:
            with open(f"{cluster.work}/runs/{job}", encoding="ascii") as file:
                lines = len(file.readlines())
        except FileNotFoundError:
            lines = 0
        if lines != 1:
            runs.append(f"job {job} ran {lines} times: {seen.get(job)}")
    good &= verdict("every-job-ended-as-it-should", not wrong, "\n".join(wrong[:20]))
    good &= verdict("every-script-ran-once", not runs, "\n".join(runs[:20]))
    # A submission whose answer never came has happened once or not at all.
    extra = [f"{job}: {len(os.listdir(cluster.work))}" for job in os.listdir(f"{cluster.work}/runs") if job not in seen]
    good &= verdict("nothing-ran-that-is-not-known", not extra, "\n".join(extra))
    left = []
    for node in sorted(os.listdir(os.path.join(cluster.state, "nodes"))):
        jobs = os.path.join(cluster.state, "nodes", node, "jobs")
        left += [f"{node}: {job}" for job in (os.listdir(jobs) if os.path.isdir(jobs) else [])]
    return good & verdict("nothing-is-left-on-the-nodes", not left, "\n".join(left))


def main():
    print(f"seed {SEED} (TUTTI_SEED), {CRASHES} crashes (TUTTI_CRASHES)", flush=True)
    chance = random.Random(SEED)
    cluster = Cluster("--nodes", "2", "--cpus", "32")
    try:
        cluster.__enter__()
    except RuntimeError as error:
        if "namespaces" not in str(error):
            raise
        print(f"skip crash # {str(error).splitlines()[-2]}")
        return 0
    try:
        os.mkdir(f"{cluster.work}/runs", 0o777)
        os.chmod(f"{cluster.work}/runs", 0o777)
        submitters = [Submitter(cluster, SEED + i) for i in range(2)]
        for s in submitters:
            s.start()
        causes = {}
        try:
            causes = crash_controllers(cluster, chance)
        finally:
            for s in submitters:
                s.stopping = True
            for s in submitters:
                s.join()
        both = submitters[0].jobs.keys() & submitters[1].jobs.keys()
        submitters[0].strange += submitters[1].strange + [f"number {n} was printed twice" for n in both]
        submitters[0].jobs.update(submitters[1].jobs)
        print(f"{sum(causes.values())} controllers died: {causes}; {len(submitters[0].jobs)} jobs", flush=True)
        good = after_crashes(cluster, submitters[0])
        if not good:
            cluster.show_logs()
        return 0 if good else 1
    finally:
        cluster.__exit__(None, None, None)


if __name__ == "__main__":
    sys.exit(main())
