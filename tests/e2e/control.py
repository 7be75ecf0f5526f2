#!/usr/bin/env python3
# Jobs under command: scancel by every selection and signal, scontrol hold, release, update, requeue
# and show, sinfo's forms.
# time-limit: 240
import os
import re

from checks import main
from cluster import TOP, wait_for

def signals(t):
    t.put("deaf.sh", "#!/bin/bash\nfor s in USR1 USR2 URG; do trap \"echo shell $s\" $s; done\n"
                     "srun bash -c 'for s in USR1 USR2 URG; do trap \"echo step $s\" $s; done; echo ready; while [ ! -e '$1' ]; do sleep 0.05; done' &\n"
                     "while [ ! -e $1 ]; do sleep 0.05; done; wait\n")
    job = t.submit("-o deaf.out deaf.sh enough")
    t.has_line("deaf.out", "ready")
    t.out(f"scancel --signal=USR1 {job}")
    t.has_line("deaf.out", "step USR1")
    t.out(f"scancel -b -s USR2 {job}")
    t.has_line("deaf.out", "shell USR2")
    t.out(f"scancel -f -s URG {job}")
    t.has_line("deaf.out", "shell URG")
    t.has_line("deaf.out", "step URG")
    t.out(f"scancel -s 10 {job}.0")  # USR1 to one step
    wait_for(10, lambda: t.text("deaf.out").count("step USR1") == 2)
    t.put("enough", "")
    t.equal("signals-end-nothing", "COMPLETED", t.ended(job))
    seen = t.text("deaf.out")
    t.equal("signal-goes-to-the-steps", False, "shell USR1" in seen)
    t.equal("batch-signal-goes-to-the-shell", False, "step USR2" in seen)
    t.refused("unknown-signal", "scancel -s NOSUCH 1", r"Unknown job signal: NOSUCH", 1)
    t.equal("signal-to-a-job-that-is-over", "", t.sh(f"scancel -s USR1 {job}").stdout)


def selections(t):
    def jobs(*words):
        return [t.submit(f"-o /dev/null {w} --wrap 'sleep 100'") for w in words]

    def left(all_jobs):
        return [j for j in all_jobs if t.out(f"squeue -h -j {j} -t PD,R,CG -o %T") in ("PENDING", "RUNNING")]

    mine = jobs("-J one", "-J two", "-J one -H", "-J two -p short", "-J three -w node03")
    for job in (mine[0], mine[1], mine[3], mine[4]):
        t.running(job)
    t.out("scancel -n one -t PENDING")
    t.equal("scancel-by-name-and-state", [j for j in mine if j != mine[2]], left(mine))
    t.out("scancel -p short -u $(id -un)")
    t.equal("scancel-by-partition-and-user", [mine[0], mine[1], mine[4]], left(mine))
    t.out("scancel -w node03")
    t.that("scancel-by-node", mine[4] not in left(mine))
    t.out("scancel --me -n two")
    t.equal("scancel-me-by-name", [mine[0]], left(mine))
    t.equal("scancel-of-somebody-else's", "", t.sh("scancel -u nobody").stdout)
    t.equal("and-mine-goes-on", [mine[0]], left(mine))
    t.match("scancel-verbose", rf"^scancel: Terminating job {mine[0]}$", t.sh(f"scancel -v {mine[0]}").stderr)
    t.equal("cancelled", "CANCELLED", t.ended(mine[0]))
    array = t.submit("--array=0-9 -H -o /dev/null --wrap 'sleep 100'")
    t.out(f"scancel {array}_[2-4] {array}_7")
    t.equal("scancel-array-range", f"{array}_[0-1,5-6,8-9]", t.out(f"squeue -h -j {array} -o %i"))
    t.equal("range-in-sacct", [f"{array}_[2-4]", f"{array}_7"],
            t.out(f"sacct -X -n -P -s CA -o JobID -j {array}").split("\n"))
    t.out(f"scancel {array}")
    t.equal("scancel-the-rest", "CANCELLED", t.ended(array))
    job = t.submit("-n2 -o step.out --wrap 'srun bash -c \"echo up; sleep 100\"; echo after $?'")
    t.has_line("step.out", "up")
    t.out(f"scancel {job}.0")
    t.equal("scancel-a-step", "COMPLETED", t.ended(job))
    t.match("and-the-script-goes-on", r"^after 1[34]\d$|^after [1-9]", t.text("step.out"))
    t.equal("step-in-sacct", "CANCELLED", t.out(f"sacct -n -P -o State -j {job}.0").split()[0])
    done = t.sh("scancel 99999")
    t.equal("scancel-of-an-unknown-job-is-silent", (0, "", ""), (done.returncode, done.stdout, done.stderr))
    t.equal("scancel-without-a-job", 1, t.sh("scancel").returncode)


def changes(t):
    job = t.submit("-H -J before -t 10 -o /dev/null --wrap true")
    show = lambda: t.out(f"scontrol show job {job}")
    t.out(f"scontrol update jobid={job} jobname=after timelimit=20 comment='a word' partition=short nice=5")
    for name, want in (("name", "JobName=after"), ("limit", "TimeLimit=00:20:00"), ("comment", "Comment=a word"),
                       ("partition", "Partition=short"), ("nice", "Nice=5")):
        t.match("update-" + name, want + r"( |$)", show())
    t.refused("update-to-an-unknown-partition", f"scontrol update jobid={job} partition=nosuch", r"Invalid partition name specified")
    t.refused("update-of-nothing", f"scontrol update jobid={job} nosuch=1", r".")
    t.refused("update-of-an-unknown-job", "scontrol update jobid=99999 nice=1", r"Invalid job id specified")
    t.out(f"scontrol release {job}")
    t.equal("release", "COMPLETED", t.ended(job))
    job = t.submit("--begin=now+1hour -o /dev/null --wrap true")
    t.equal("begins-later", "BeginTime", t.out(f"squeue -h -j {job} -o %r"))
    t.out(f"scontrol hold {job}")
    t.equal("hold", "JobHeldAdmin" if os.geteuid() == 0 else "JobHeldUser", t.out(f"squeue -h -j {job} -o %r"))
    t.out(f"scontrol release {job}; scontrol update jobid={job} starttime=now")
    t.equal("start-now", "COMPLETED", t.ended(job))
    array = t.submit("--array=1-4%1 -H -o /dev/null --wrap 'sleep 0.2'")
    t.out(f"scontrol update jobid={array} arraytaskthrottle=3")
    t.match("throttle", r"ArrayTaskThrottle=3", t.out(f"scontrol show job {array}"))
    t.out(f"scontrol release {array}")
    t.equal("array-completes", "COMPLETED", t.ended(array))
    job = t.submit("-t 60 -o /dev/null --wrap 'sleep 100'")
    t.running(job)
    t.out(f"scontrol update jobid={job} timelimit=30")
    t.match("limit-of-a-running-job", r"TimeLimit=00:30:00", t.out(f"scontrol show job {job}"))
    t.refused("hold-of-a-running-job", f"scontrol hold {job}", r".")
    t.out(f"scancel {job}")
    for words, regex in (("show job 99999", r"Invalid job id specified"), ("show node nosuch", r"Node nosuch not found"),
                         ("show partition nosuch", r"Partition nosuch not found"), ("bogus", r"invalid keyword: bogus|bogus")):
        done = t.sh("scontrol " + words)
        t.that("scontrol-" + words.replace(" ", "-"), done.returncode != 0 and re.search(regex, done.stdout + done.stderr), done.stdout + done.stderr)
    t.equal("one-line", 1, len(t.out("scontrol -o show node node01").strip().split("\n")))
    t.equal("hostnames", "a1\na2\nb7", t.out("scontrol show hostnames 'a[1-2],b7'"))
    t.equal("hostlist", "a[1-3]", t.out("scontrol show hostlist a1,a2,a3"))
    t.match("ping", r"is UP$", t.out("scontrol ping"))
    t.match("config", r"(?m)^MinJobAge +=", t.out("scontrol show config"))


def requeues(t):
    t.put("again.sh", "#!/bin/bash\necho life ${SLURM_RESTART_COUNT:-0}\n[ ${SLURM_RESTART_COUNT:-0} -ge 2 ] && exit 0\n"
                      "scontrol requeue $SLURM_JOB_ID\nsleep 60\n")
    job = t.submit("--requeue --open-mode=append -o again.out again.sh")
    t.has_line("again.out", "life 2", 30)
    t.equal("requeue-inside", "COMPLETED", t.ended(job))
    t.equal("three-lives", ["life 0", "life 1", "life 2"], [l for l in t.text("again.out").split("\n") if l.startswith("life")])
    t.equal("lives-in-sacct", ["REQUEUED", "REQUEUED", "COMPLETED"], t.out(f"sacct -D -X -n -P -o State -j {job}").split("\n"))
    t.match("lives-in-why", r"(?s)life 1: on .*life 2: on .*life 3:", t.out(f"tutti why {job}"))
    job = t.submit("-o /dev/null --wrap 'sleep 100'")
    t.running(job)
    t.out(f"scontrol requeuehold {job}")
    wait_for(20, lambda: t.out(f"squeue -h -j {job} -o %T") == "PENDING")
    t.match("requeuehold", r"Held", t.out(f"squeue -h -j {job} -o %r"))
    t.out(f"scontrol release {job}")
    t.running(job)
    t.out(f"scancel {job}")
    job = t.submit("--no-requeue -o /dev/null --wrap 'sleep 100'")
    t.running(job)
    t.refused("no-requeue", f"scontrol requeue {job}", r"Requested operation is presently disabled")
    t.out(f"scancel {job}")
    t.refused("requeue-of-what-is-over", f"scontrol requeue {t.submit('--wait -o /dev/null --wrap true')}", r".")
    code = t.sh("sbatch --wait -o /dev/null --array=1-3 --wrap 'exit $SLURM_ARRAY_TASK_ID'").returncode
    t.equal("wait-gives-the-worst-code", 3, code)


def listings(t):
    wait_for(30, lambda: t.out("squeue -h -o %i") == "")
    t.out("scontrol update nodename=node02 state=drain reason='a test'")
    t.equal("sinfo-states", "batch*|3|idle\nbatch*|1|drain\nshort|2|idle",
            "\n".join(sorted(t.out("sinfo -h -o '%P|%D|%t'").split("\n"), key=lambda l: (l[0], -int(l.split('|')[1])))))
    t.match("sinfo-reasons", r"^a test +\w+ +\S+ node02$", t.out("sinfo -h -R"))
    t.equal("sinfo-by-node", ["node01|idle", "node02|drained", "node03|idle", "node04|idle"],
            sorted(t.out("sinfo -h -N -p batch -o '%N|%T'").split("\n")))
    t.equal("sinfo-by-state", "node02", t.out("sinfo -h -t drain -o %N"))
    t.equal("sinfo-of-nodes", "2", t.out("sinfo -h -n node03,node04 -p batch -o %D"))
    t.equal("sinfo-sizes", "16 64000 gpu:h100:4 ib,intel", t.out("sinfo -h -p short -o '%c %m %G %f'"))
    t.equal("sinfo-allocated", "0/16/16/32", t.out("sinfo -h -N -n node01,node02 -p batch -O cpusstate -h | awk -F/ '{a+=$1; b+=$2; c+=$3; d+=$4} END {print a\"/\"b\"/\"c\"/\"d}'"))
    t.match("sinfo-summary", r"^PARTITION +AVAIL +TIMELIMIT +NODES\(A/I/O/T\) +NODELIST", t.out("sinfo -s"))
    t.match("sinfo-long", r"ROOT OVERSUBS", t.out("sinfo -l"))
    job = t.submit("-w node02 -o /dev/null --wrap true")
    t.match("drained-node-takes-no-job", r"Nodes_required|ReqNodeNotAvail|DRAINED", t.out(f"squeue -h -j {job} -o %r").replace(" ", "_"))
    t.out("scontrol update nodename=node02 state=resume")
    t.equal("resumed-node-does", "COMPLETED", t.ended(job))
    t.refused("drain-without-a-reason", "scontrol update nodename=node01 state=drain", r".")
    t.out("scontrol update partitionname=short state=down")
    job = t.submit("-p short -o /dev/null --wrap true")
    t.equal("partition-down", "PartitionDown", t.out(f"squeue -h -j {job} -o %r"))
    t.out("scontrol update partitionname=short state=up")
    t.equal("partition-up", "COMPLETED", t.ended(job))


def run(t):
    for part in (signals, selections, changes, requeues, listings):
        t.section(part)


if __name__ == "__main__":
    main(run, "--slurm-conf", os.path.join(TOP, "tests/data/kinds/slurm.conf"))
