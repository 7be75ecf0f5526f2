#!/usr/bin/env python3
# The command lines of tests/golden/slurm on a live cluster like the one they were recorded on, as
# the users alice and bob: stdout, stderr and exit status beside what Slurm 22.05.8 gave.
# time-limit: 400
"""A difference that is meant has a line in docs/slurm-compatibility.md, in the section "The same
commands on a live cluster":

    * `FILE` `COMMAND`: reason                     (the whole answer differs)
    * `FILE` variable `NAME`: reason               (one variable of a printed environment)

A difference without a line fails, and so does a line without a difference.
"""
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time

from cluster import BIN, TOP, Cluster, wait_for

GOLDEN = os.path.join(TOP, "tests/golden/slurm")
DOCUMENT = os.path.join(TOP, "docs/slurm-compatibility.md")
SECTION = "## The same commands on a live cluster"
USERS = {"alice": 2001, "bob": 2002}
UID = {}  # where the machine has an alice with another number
FILES = {  # written by golden.sh of the recording
    "ok.sh": "#!/bin/bash\n#SBATCH --job-name=demo\n#SBATCH --time=10\necho hello from $SLURM_JOB_ID\n",
    "train.sh": "#!/bin/bash\n#SBATCH -J train\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n"
                "#SBATCH --cpus-per-task=2\n#SBATCH --gres=gpu:rtxpro6000:4\n#SBATCH --mem=64G\n"
                "#SBATCH -t 2:00:00\n#SBATCH --comment=\"golden\"\nsrun sleep 600\n",
    "noshebang.sh": "echo hi\n",
    "fail.sh": "#!/bin/bash\nexit 3\n",
}


class Entry:
    """One command of a reference file with its answer."""

    def __init__(self, command):
        self.command, self.out, self.err, self.status = command, [], [], 0


def read_golden(name):
    entries = []
    with open(os.path.join(GOLDEN, name + ".txt"), encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line.startswith("$ "):
                entries.append(Entry(line[2:]))
            elif line.startswith("2> "):
                entries[-1].err.append(line[3:])
            elif re.match(r"\[exit \d+\]$", line):
                entries[-1].status = int(line[6:-1])
            elif entries and line and not line.startswith("# "):
                entries[-1].out.append(line)
    return entries


def read_kept():
    """file -> ({command: reason}, {variable: reason})"""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read().partition(SECTION + "\n")[2].partition("\n## ")[0]
    kept = {}
    for line in re.sub(r"\n  +", " ", text).split("\n"):
        match = re.match(r"\* `([\w-]+)` (variable )?`(.+?)`: \S", line)
        if match:
            kept.setdefault(match[1], ({}, {}))[1 if match[2] else 0][match[3]] = line
    return kept


def slurms_own(text):
    """The lines that Slurm has too: what Tutti knows beyond them begins with its name."""
    return [line for line in text.split("\n") if not re.match(r"(sbatch|srun|salloc): tutti: ", line)]


class Reference:
    """One reference file, played on the cluster command by command."""

    def __init__(self, cluster, name, kept):
        self.cluster, self.name = cluster, name
        self.entries, self.position = read_golden(name), 0
        self.commands, self.variables = kept.get(name, ({}, {}))
        self.live = {}  # recorded id -> id here
        self.equal, self.failed, self.used = 0, 0, set()

    def here(self, command):
        # One digit alone is a number of tasks as a rule.
        return re.sub(r"(?<=slurm-)\d+|(?<=out-)\d+|(?<![\d.])\d\d+(?!\d)", lambda m: str(self.live.get(int(m[0]), m[0])), command)

    def next(self):
        """Runs the next command; its printed job id stands for the recorded one."""
        entry = self.entries[self.position]
        self.position += 1
        result = as_user(self.cluster, "alice", self.here(entry.command))
        recorded = re.search(r"^(?:Submitted batch job )?(\d+)$", "\n".join(entry.out), re.M)
        submitted = re.search(r"^(?:Submitted batch job )?(\d+)$", result.stdout, re.M)
        if recorded and submitted and "sbatch" in entry.command:
            self.live[int(recorded[1])] = int(submitted[1])
        self.compare(entry, result)
        return int(submitted[1]) if submitted else None

    def rest(self):
        while self.position < len(self.entries):
            self.next()

    def until(self, part):
        """Runs the commands before the first one that contains `part`."""
        while part not in self.entries[self.position].command:
            self.next()

    def compare(self, entry, result):
        sort = "squeue" in entry.command  # the order of equal rows is Slurm's chance
        want = self.normal(entry.out, sort), self.normal(entry.err), entry.status
        seen = self.normal(result.stdout.split("\n"), sort), self.normal(slurms_own(result.stderr)), result.returncode
        if want == seen:
            self.equal += 1
            return
        if entry.command in self.commands:
            self.used.add(entry.command)
            return
        self.failed += 1
        print(f"different: {entry.command}")
        for title, old, new in zip(("stdout", "stderr"), want, seen):
            for line in old:
                if line not in new:
                    print(f"  {title} recorded: {line}")
            for line in new:
                if line not in old:
                    print(f"  {title} here:     {line}")
            if old != new and sorted(old) == sorted(new):
                print(f"  {title}: another order")
        if want[2] != seen[2]:
            print(f"  exit status recorded {want[2]}, here {seen[2]}")

    def normal(self, lines, sort=False):
        names = {str(live): str(recorded) for recorded, live in self.live.items()}
        result = []
        for line in lines:
            variable = re.match(r"([A-Z_]+)=", line)
            if variable and variable[1] in self.variables:
                self.used.add(variable[1])
                continue
            line = re.sub(r"(?<!\d)5\d\d\d(?!\d)", lambda m: names.get(m[0], m[0]), line)
            line = line.replace(self.cluster.home, "~alice").replace(self.cluster.state, "LAB")
            line = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "HOST", line)
            line = re.sub(rf"((?:UID|GID)=|alice\()({UID['alice']})\b", r"\g<1>2001", line)
            line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", line)
            line = re.sub(r"((?:StepId|JobId|JOBID|JOB_ID)=|\bSTEP |\b[Jj]ob |allocation )\d+", r"\1ID", line)
            line = re.sub(r"((?:PID|PORT|Priority|RunTime|Sid)=)\S+", r"\1N", line)
            line = re.sub(r"\b0:0\d\b", "0:0N", line) if sort else line
            line = re.sub(r"  +", " ", line).strip()
            if line:
                result.append(line)
        return sorted(result) if sort else result

    def finish(self):
        self.rest()
        compared = len(self.entries)
        stale = [w for w in list(self.commands) + list(self.variables) if w not in self.used]
        for what in stale:
            print(f"no longer different, but in the document: {what}")
        print(f"{self.name}: equal {self.equal} of {compared} compared")
        print(f"{'not ok' if self.failed or stale else 'ok'} {self.name}")
        return self.failed + len(stale)


def as_user(cluster, user, command):
    environment = {"PATH": BIN + ":/usr/bin:/bin", "HOME": cluster.home, "USER": user, "LOGNAME": user,
                   "LANG": "C.UTF-8", "TUTTI_STATE": cluster.state}
    words = ["bash", "-c", command]
    if os.getuid() == 0:
        words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] + words
    return subprocess.run(words, env=environment, cwd=os.path.join(cluster.home, "g"), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60, check=False)


def quiet(cluster, command, user="alice"):
    return as_user(cluster, user, command).stdout.strip()


def ended(cluster, job):
    return lambda: not quiet(cluster, f"squeue -h -j {job} -t PD,R,CG,CF -o %T")


def running(cluster, job):
    """Running, and its script got as far as to its first wait."""
    wait_for(20, lambda: quiet(cluster, f"squeue -h -j {job} -t R -o %i"))
    time.sleep(1.7)


def play_sbatch(cluster, reference):
    reference.until("cat slurm-1.out")
    wait_for(20, ended(cluster, reference.live[4]))


def play_array(cluster, reference):
    array = reference.next()
    running(cluster, array)
    reference.until("24r")
    wait_for(60, ended(cluster, array))
    wait_for(20, ended(cluster, reference.live[23]))
    reference.until("sacct -X -n -j 22")
    quiet(cluster, f"scancel {reference.live[22]}")
    reference.next()
    reference.rest()
    quiet(cluster, "scancel -u alice")


def play_environment(cluster, reference):
    while reference.position < len(reference.entries):
        # The devices of the command before are free once nothing of it is left.
        wait_for(20, lambda: not quiet(cluster, "squeue -h -o %i"))
        reference.next()


def play_requeue(cluster, reference):
    reference.live[31] = int(quiet(cluster, "sbatch --parsable train.sh"))
    running(cluster, reference.live[31])
    reference.live[33] = int(quiet(cluster, "sbatch --parsable -J held --hold ok.sh"))
    reference.live[35] = int(quiet(cluster, "sbatch --parsable -J later --begin=now+2hours ok.sh"))
    reference.until("squeue -j 31")
    wait_for(20, lambda: "RUNNING" in quiet(cluster, f"squeue -h -j {reference.live[31]} -o %T"))
    reference.until("squeue -j 31 -o '%i %T %r'")
    wait_for(20, lambda: "PENDING" in quiet(cluster, f"squeue -h -j {reference.live[31]} -o %T"))
    reference.until("scancel 36")
    reference.live[36] = int(quiet(cluster, "sbatch --parsable -o /dev/null --wrap='sleep 100'", "bob"))
    running(cluster, reference.live[36])
    for _ in range(2):
        reference.next()
    for _ in range(3):
        running(cluster, reference.next())
        reference.next()
    quiet(cluster, "scancel -u alice")
    quiet(cluster, "scancel -u bob", "bob")


def play_srun(cluster, reference):
    reference.until("--immediate=1")
    blocker = int(quiet(cluster, "sbatch --parsable -N4 --exclusive -o /dev/null --wrap='sleep 60'"))
    running(cluster, blocker)
    reference.next()
    quiet(cluster, f"scancel {blocker}")
    wait_for(20, ended(cluster, blocker))
    reference.rest()


def make_users():
    """The users that this made."""
    made = []
    for name, uid in USERS.items():
        try:
            pwd.getpwnam(name)
        except KeyError:
            subprocess.run(["useradd", "-u", str(uid), "-M", "-s", "/bin/bash", name], check=True, capture_output=True)
            made.append(name)
    return made


def main():
    if os.getuid() != 0:
        print("skip golden-live # the users alice and bob can be made by root only")
        return 0
    made = make_users()
    try:
        UID["alice"] = pwd.getpwnam("alice").pw_uid
        with Cluster("--slurm-conf", os.path.join(TOP, "tests/data/lab/slurm.conf")) as cluster:
            cluster.home = os.path.join(cluster.work, "alice")
            return play_all(cluster)
    finally:
        for name in made:
            subprocess.run(["userdel", name], check=False, capture_output=True)


def play_all(cluster):
    os.mkdir(cluster.home)
    folder = os.path.join(cluster.home, "g")
    kept, wrong = read_kept(), 0
    scenarios = {"sbatch": play_sbatch, "sbatch-errors": None, "array-dependency": play_array,
                 "scancel-requeue": play_requeue, "srun": play_srun, "srun-env": play_environment}
    for name, play in scenarios.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(folder)
        for file, text in FILES.items():
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                out.write(text)
        for path in [cluster.home, folder] + [os.path.join(folder, f) for f in FILES]:
            shutil.chown(path, "alice", "alice")
        reference = Reference(cluster, name, kept)
        if play:
            play(cluster, reference)
        wrong += reference.finish()
        cluster.run("scancel", "-u", "alice")
        wait_for(30, lambda: not quiet(cluster, "squeue -h -u alice -o %i"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
