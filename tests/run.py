#!/usr/bin/env python3
"""Runs groups of tests one after another, prints each one's time, and counts test cases.

A group is one program. Programs of GoogleTest are read in their own words; all other programs
(tests/e2e, tests/packaging, tests/docs, tests/tools, tools/tidy) print one line per test case:

    ok NAME
    not ok NAME
    skip NAME # reason

Other lines are shown when something fails. A program that exits non-zero without a `not ok`, or
without any line, is one failure itself. A script may have a line `# time-limit: SECONDS`
(default 600) and a line `# slow`, which --quick leaves out.
"""
import argparse
import glob
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFAULT_LIMIT = 600
SHOWN_LINES = 200  # of a failed test's output


class Counts:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


class Group:
    """One program: its name, its command line, how its output reads."""

    def __init__(self, name, command, kind, limit=DEFAULT_LIMIT, slow=False):
        self.name, self.command, self.kind, self.limit, self.slow = name, command, kind, limit, slow


def script_group(prefix, path):
    with open(path, encoding="utf-8") as file:
        head = file.read(4096)
    limit = re.search(r"^# time-limit: (\d+)$", head, re.M)
    name = os.path.splitext(os.path.basename(path))[0].replace("_", "-")
    return Group(f"{prefix}.{name}", [path], "lines", int(limit.group(1)) if limit else DEFAULT_LIMIT,
                 bool(re.search(r"^# slow$", head, re.M)))


def scripts(prefix, folder, helpers=("lib", "cluster")):
    paths = sorted(glob.glob(os.path.join(TOP, folder, "*.sh")) + glob.glob(os.path.join(TOP, folder, "*.py")))
    return [script_group(prefix, p) for p in paths
            if os.access(p, os.X_OK) and os.path.splitext(os.path.basename(p))[0] not in helpers]


def all_groups(binaries):
    groups = [Group("tidy", [os.path.join(TOP, "tools/tidy")], "status")]
    groups += scripts("tools", "tests/tools")
    whole = {"property_test": "property", "scenario_test": "scenarios", "lowering_test": "lowering"}
    programs = sorted(glob.glob(os.path.join(binaries, "*_test")))
    for program in programs:
        base = os.path.basename(program)
        if base not in whole:
            groups.append(Group("unit." + base[:-5], [program, "--gtest_filter=-*Corpus*"], "gtest"))
    for base, name in whole.items():
        if os.path.join(binaries, base) in programs:
            groups.append(Group(name, [os.path.join(binaries, base), "--gtest_filter=-*Corpus*"], "gtest"))
    for program in programs:
        if has_corpus(program):
            groups.append(Group("fuzz." + os.path.basename(program)[:-5], [program, "--gtest_filter=*Corpus*"], "gtest"))
    return groups + scripts("packaging", "tests/packaging") + scripts("docs", "tests/docs") + scripts("e2e", "tests/e2e")


def has_corpus(program):
    listed = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=False).stdout
    return any("Corpus" in line for line in listed.splitlines() if not line.startswith("Running"))


def run_limited(command, limit, environment):
    """(exit status or None when the limit passed, output). The program's group ends with it."""
    with tempfile.TemporaryFile() as sink:
        child = subprocess.Popen(command, cwd=TOP, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                                 env=environment, start_new_session=True)
        try:
            status = child.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(child.pid, signal.SIGTERM)  # a script tears its cluster down
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGTERM)
            child.wait()
            raise
        sink.seek(0)
        return status, sink.read().decode("utf-8", "replace")


def show(text):
    lines = text.splitlines()
    if len(lines) > SHOWN_LINES:
        print(f"    | ({len(lines) - SHOWN_LINES} lines left out)")
    for line in lines[-SHOWN_LINES:]:
        print("    | " + line)


def read_gtest(group, status, output):
    """Counts of a GoogleTest program; prints what failed and what was skipped."""
    counts, current, lines = Counts(), None, []
    for line in output.splitlines():
        run = re.match(r"\[ RUN      \] (\S+)", line)
        end = re.search(r"\[  (     OK|FAILED |SKIPPED) \] (\S+?),?( where .*)? \(\d+ ms\)$", line)
        if run:
            current, lines = run.group(1), []
        elif end and end.group(2) == current:
            word = end.group(1).strip()
            if word == "OK":
                counts.passed += 1
            elif word == "FAILED":
                counts.failed.append(f"{group.name} {current}")
                print(f"not ok {group.name} {current}")
                show("\n".join(lines))
            else:
                text = [l for l in lines if l.strip() and not re.match(r"\S+:\d+: Skipped$", l)]
                reason = text[-1].strip() if text else "no reason given"
                counts.skipped.append(f"{group.name} {current} # {reason}")
                print(f"skip {group.name} {current} # {reason}")
            current = None
        else:
            lines.append(line)
    if current is not None:
        why = "passed its time limit" if status is None else f"ended the program ({status})"
        counts.failed.append(f"{group.name} {current}")
        print(f"not ok {group.name} {current}: {why}")
        show("\n".join(lines))
    return counts


def read_lines(group, _status, output):
    counts = Counts()
    for line in output.splitlines():
        match = re.match(r"(ok|not ok|skip) (\S.*)$", line)
        if not match:
            continue
        word, name = match.groups()
        if word == "ok":
            counts.passed += 1
        elif word == "skip":
            counts.skipped.append(f"{group.name} {name}")
            print(f"skip {group.name} {name}")
        else:
            counts.failed.append(f"{group.name} {name}")
            print(f"not ok {group.name} {name}")
    if counts.failed:
        show(output)
    return counts


def read_status(group, status, output):
    counts = Counts()
    if status == 0:
        counts.passed = 1
    else:
        counts.failed.append(group.name)
        print(f"not ok {group.name}")
        show(output)
    return counts


def run_group(group, environment, limit=None):
    status, output = run_limited(group.command, limit or group.limit, environment)
    counts = {"gtest": read_gtest, "lines": read_lines, "status": read_status}[group.kind](group, status, output)
    nothing = not (counts.passed or counts.failed or counts.skipped)
    if not counts.failed and (status != 0 or nothing):
        why = "passed its time limit" if status is None else f"exit status {status}" + (", no test case" if nothing else "")
        counts.failed.append(f"{group.name} ({why})")
        print(f"not ok {group.name}: {why}")
        show(output)
    return counts


def select(groups, names):
    chosen = [g for g in groups if any(g.name == n or g.name.startswith(n + ".") for n in names)]
    for name in names:
        if not any(g.name == name or g.name.startswith(name + ".") for g in groups):
            sys.exit(f"./test: no group is named `{name}`; ./test --list names all")
    return chosen


def main():
    parser = argparse.ArgumentParser(prog="./test", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="leave out slow groups")
    parser.add_argument("--list", action="store_true", help="name the groups")
    parser.add_argument("--preset", default="release", help="which build")
    parser.add_argument("groups", nargs="*", help="only these groups")
    arguments = parser.parse_args()
    binaries = os.path.join(TOP, "build", arguments.preset, "bin")
    groups = all_groups(binaries)
    if arguments.groups:
        groups = select(groups, arguments.groups)
    elif arguments.quick:
        groups = [g for g in groups if not g.slow]
    if arguments.list:
        print("\n".join(g.name for g in groups))
        return 0
    environment = dict(os.environ, TUTTI_BIN=binaries)
    environment.pop("TUTTI_STATE", None)  # no test may touch the cluster of whoever runs it
    environment.pop("SLURM_CONF", None)
    if arguments.quick:
        environment["TUTTI_TEST_QUICK"] = "1"
    total, begun = Counts(), time.monotonic()
    for group in groups:
        started = time.monotonic()
        counts = run_group(group, environment)
        total.add(counts)
        parts = [f"{counts.passed} passed"]
        parts += [f"{len(counts.failed)} failed"] if counts.failed else []
        parts += [f"{len(counts.skipped)} skipped"] if counts.skipped else []
        print(f"{group.name:<24} {time.monotonic() - started:7.1f} s   {', '.join(parts)}", flush=True)
    print(f"{len(groups)} groups in {time.monotonic() - begun:.0f} s")
    for name in total.failed:
        print(f"failed: {name}")
    for name in total.skipped:
        print(f"skipped: {name}")
    print(f"{total.passed} passed, {len(total.failed)} failed, {len(total.skipped)} skipped", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
