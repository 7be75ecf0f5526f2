#!/usr/bin/env python3
# What is refused at submission and how: one line of Slurm's, one of ours, a non-zero exit, nothing
# half-done; and the words of tutti itself.
# time-limit: 240
import os
import subprocess

from checks import Terminal, main
from cluster import BIN, TOP


def submission(t):
    before = t.out("squeue -h -t all -o %i | wc -l")
    t.refused("unknown-partition", "sbatch -p nosuch --wrap true",
              r"^sbatch: error: invalid partition specified: nosuch\n.*Invalid partition name specified$")
    t.refused("unknown-gpu-type", "sbatch --gres=gpu:nosuch:1 --wrap true",
              r'Requested node configuration is not available\nsbatch: tutti: no node has GPUs of type "nosuch"$')
    t.refused("unknown-device-kind", "sbatch --gres=fpga:1 --wrap true", r"Invalid generic resource \(gres\) specification")
    t.refused("unknown-option", "sbatch --nosuchoption --wrap true", r"^sbatch: unrecognized option '--nosuchoption'$", 255)
    t.refused("unknown-feature", "sbatch -C nosuch --wrap true", r"Invalid feature specification\nsbatch: tutti: .*nosuch")
    t.refused("unknown-node", "sbatch -w nosuch --wrap true", r"Invalid node name specified\nsbatch: tutti: .*nosuch")
    for name, words, numbers in (("nodes", "-N 99", "99 nodes.*4 nodes"), ("cpus", "-c 999", "999 CPUs"),
                                 ("gpus", "--gpus-per-node=64", "64 GPUs"), ("memory", "--mem=99999G", "memory"),
                                 ("tasks", "-N 1 -n 500", "500 CPUs")):
        t.refused("never-fits-" + name, f"sbatch {words} --wrap true",
                  rf"Requested node configuration is not available\nsbatch: tutti: .*{numbers}")
    t.refused("srun-never-fits", "srun -N 99 true", r"Requested node configuration is not available\nsrun: tutti: .*99 nodes")
    t.refused("salloc-never-fits", "salloc -N 99 true", r"Requested node configuration is not available\nsalloc: tutti: .*99 nodes")
    for value in ("banana", "1:2:3:4:5", "5x"):
        t.refused("time-" + value, f"sbatch --time={value} --wrap true", r"Invalid --time specification", 255)
    for value in ("lots", "5Q", "-3G"):
        t.refused("memory-" + value, f"sbatch --mem={value} --wrap true", r"Invalid --mem specification", 255)
    t.refused("count-that-is-none", "sbatch -n x --wrap true", r'Invalid numeric value "x" for --ntasks')
    t.refused("begin-that-is-no-time", "sbatch --begin=never --wrap true", r"Invalid --begin specification", 255)
    t.refused("array-that-is-none", "sbatch --array=1-x --wrap true", r"Invalid job array specification")
    t.refused("dependency-on-nothing", "sbatch -d afterok:99999 --wrap true",
              r"Job dependency problem\nsbatch: tutti: it depends on job 99999")
    t.equal("nothing-was-queued", before, t.out("squeue -h -t all -o %i | wc -l"))


def scripts(t):
    t.put("nobang.sh", "echo hi\n")
    t.refused("no-interpreter-line", "sbatch nobang.sh", r"This does not look like a batch script")
    t.refused("no-such-script", "sbatch nowhere.sh", r"Unable to open file nowhere.sh")
    t.put("empty.sh", "")
    t.refused("empty-script", "sbatch empty.sh", r"Batch script is empty!")
    t.put("dos.sh", "#!/bin/bash\r\necho hi\r\n")
    t.refused("dos-line-ends", "sbatch dos.sh", r"DOS line breaks")
    t.refused("a-directory", "sbatch /tmp", r"^sbatch: error: ")
    with open(t.path("garbage"), "wb") as file:
        file.write(bytes((i * 7919 + i // 256) % 256 for i in range(1, 70000)))
    t.refused("binary-garbage", "sbatch garbage", r"This does not look like a batch script")
    # With a first line that is right, it is the interpreter's matter.
    with open(t.path("half"), "wb") as file:
        file.write(b"#!/bin/sh\necho before\n\x01\xff\xfe#SBATCH --nodes=99\n)(\n")
    with open(t.path("nul"), "wb") as file:
        file.write(b"#!/bin/sh\ntrue\x00\n")
    t.refused("a-zero-byte", "sbatch nul", r"NULL character")
    job = t.submit("-o half.txt -e /dev/null half")
    t.equal("garbage-below-the-first-line", ("FAILED", "before"), (t.ended(job), t.text("half.txt").split("\n")[0]))
    t.put("bad-option.sh", "#!/bin/bash\n#SBATCH --nodes=two\ntrue\n")
    t.refused("bad-option-in-the-script", "sbatch bad-option.sh", r"two", 255)
    # The rest of a script that is too large is not read.
    t.put("endless.sh", "#!/bin/bash\nprintf '#!/bin/sh\\n'\nfor i in $(seq 64); do head -c 1048576 /dev/zero | tr '\\0' '#' || exit; "
                        "echo $i >written; done\n")
    t.refused("script-above-4-MiB", "./endless.sh 2>/dev/null | sbatch", r"^sbatch: error: ")
    t.that("and-the-rest-is-not-read", int(t.text("written") or 0) <= 6, t.text("written"))
    t.put("long.sh", "#!/bin/sh\n" + "# a comment\n" * 340000 + "exit 4\n")
    job = t.submit("-o /dev/null long.sh")
    t.equal("almost-4-MiB-run", "FAILED", t.ended(job))
    # Output in a directory that is not there: accepted, the job fails at once and says where.
    job = t.submit("-o nowhere/out.txt --wrap true")
    t.equal("output-directory-missing", ("FAILED", "0:53"), (t.ended(job), t.out(f"sacct -X -n -P -o ExitCode -j {job}")))
    t.match("its-story-names-the-path", r"nowhere/out.txt", t.out(f"COLUMNS=300 tutti why {job}"))
    done = t.sh(f"tutti logs {job}")
    t.that("its-logs-name-the-path", done.returncode == 1 and "nowhere/out.txt" in done.stderr and "No such file" in done.stderr, done.stderr)
    t.put("missing.sh", "#!/bin/bash\n#SBATCH -o nowhere/x.txt\ntrue\n")
    t.match("lint-warns-of-it", r"missing.sh:2:\d+: warning: .*nowhere", t.sh("tutti lint missing.sh").stdout)
    t.put("interpreter.sh", "#!/no/interpreter -x\ntrue\n")
    job = t.submit("-o interpreter.txt interpreter.sh")
    t.ended(job)
    t.equal("interpreter-missing", f"slurmstepd-{t.out(f'sacct -X -n -P -o NodeList -j {job}')}: error: execve(): bad interpreter"
            "(/no/interpreter): No such file or directory\n", t.text("interpreter.txt"))


def configuration(t):
    t.put("slurm.conf", "ClusterName=x\nNodeName=a[1-2] CPUs=many RealMemory=4x\nPartitionName=p Nodes=a[1-9]\n"
                        "PartitionName=q Nodes=a1 MaxTime=soon\nNonsense\nKillWait=forever\n")
    done = t.sh("tutti up --state conf-state --slurm-conf slurm.conf")
    t.that("bad-configuration-is-refused", done.returncode != 0 and not os.path.exists(t.path("conf-state")), done.stderr)
    for line, word in ((2, "CPUs"), (2, "RealMemory"), (3, "a"), (4, "MaxTime"), (5, "Nonsense"), (6, "KillWait")):
        t.match(f"error-in-line-{line}-{word}", rf"slurm.conf:{line}:\d+: .*{word}", done.stderr)


def words(t):
    t.refused("tutti-unknown-command", "tutti bogus", r"^tutti: there is no command `bogus`; there are: up down run", 2)
    t.refused("up-nodes-that-are-no-number", "tutti up --nodes abc", r"--nodes: expected a whole number of at least 1, not `abc`", 2)
    t.refused("up-with-another-size", "tutti up --nodes 9", r"the cluster is up with 4 nodes.*9 nodes")
    t.match("up-with-the-same", r"^already up: 4 nodes", t.out("tutti up --slurm-conf " + os.path.join(TOP, "tests/data/kinds/slurm.conf")))
    t.refused("lint-of-a-directory", "tutti lint /tmp", r"^tutti lint: /tmp: is a directory", 2)
    done = t.sh("squeue -h -u nobody-such")
    t.equal("squeue-of-nobody", (0, "", "squeue: error: Invalid user: nobody-such\n\n"), (done.returncode, done.stdout, done.stderr))
    t.equal("squeue-by-number", t.out("squeue -h -t all -u $(id -un) -o %i"), t.out("squeue -h -t all -u $(id -u) -o %i"))
    t.refused("why-of-an-unknown-job", "tutti why 99999", r"^tutti why: job 99999 is not known")
    t.refused("logs-of-an-unknown-job", "tutti logs 99999", r"^tutti logs: job 99999 is not known")
    t.match("no-pmi", r"^srun: Warning: --mpi=pmi2: there is no PMI server", t.sh("srun --mpi=pmi2 true").stderr)
    t.equal("mpi-list", "MPI plugin types are...\n\tnone", t.out("srun --mpi=list"))
    done = t.sh("salloc -n 1 srun -n 500 true")
    t.that("step-that-never-fits", done.returncode == 1 and "More processors requested than permitted\nsrun: tutti: 500 tasks" in done.stderr, done.stderr)
    job = t.submit("--array=1-2 -o 'a-%a.txt' --wrap 'echo element $SLURM_ARRAY_TASK_ID'")
    t.ended(job)
    shown = t.out(f"tutti logs {job}")
    t.match("logs-of-an-array", rf"(?s)==> {job}_1: .*a-1.txt <==\nelement 1\n\n==> {job}_2: .*\nelement 2$", shown)
    os.unlink(t.path("a-2.txt"))
    t.refused("logs-of-a-file-that-is-gone", f"tutti logs {job}_2", r"a-2.txt: no such file; the job is over")
    job = t.submit("-J 'обучение-очень-длинное-имя' -o /dev/null --wrap 'sleep 60'")
    t.running(job)
    top = subprocess.run([os.path.join(BIN, "tutti"), "top", "--once"], env=t.cluster.environment, capture_output=True, check=False).stdout
    t.match("top-cuts-whole-characters", r"обучение-очень-длинн ", top.decode("utf-8"))
    t.refused("purge-with-jobs-wants-yes", "tutti down --purge", r"1 job is running: --purge would delete it with all history; say --yes")
    t.equal("and-nothing-happened", "RUNNING", t.out(f"squeue -h -j {job} -o %T"))
    t.out(f"scancel {job}")
    terminal = Terminal(t, "tutti bogus")
    t.equal("exit-status-on-a-terminal", 2, terminal.end())


def as_others(t):
    if os.geteuid() != 0:
        print("skip as-others # needs root: it acts as another user")
        return
    other = "setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp "
    if t.sh(other + f"test -x {BIN}/tutti").returncode != 0:
        print("skip as-others # other users cannot read this tree")
        return
    t.refused("another-user-cannot-stop-it", other + "tutti down --yes", r"^tutti: the cluster in \S+ belongs to root, who alone")
    t.refused("another-user-cannot-start-it", other + "tutti up", r"^tutti: the cluster in \S+ belongs to root")
    seen = t.sh(other + "tutti doctor").stdout
    t.match("doctor-knows-the-journal's-size", r"journal +[1-9]\d* bytes, \d+ in the log", seen)
    t.that("doctor-denies-no-isolation", "not isolated" not in seen, seen)
    os.makedirs(t.path("closed"), mode=0o700)
    t.refused("up-below-a-closed-directory", "tutti up --state closed/s --nodes 1", r"closed has mode 0700: .* chmod o\+x")
    t.equal("and-leaves-nothing", [], os.listdir(t.path("closed")))


def run(t):
    for part in (submission, scripts, configuration, words, as_others):
        t.section(part)


if __name__ == "__main__":
    main(run, "--slurm-conf", os.path.join(TOP, "tests/data/kinds/slurm.conf"))
