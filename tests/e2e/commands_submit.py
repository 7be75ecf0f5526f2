#!/usr/bin/env python3
# sbatch option by option on a live cluster: scripts, output, arrays, placement, devices, time.
# time-limit: 300
import os

from checks import main
from cluster import TOP


def scripts(t):
    t.put("args.sh", "#!/bin/bash\necho \"$# <$1> <$2>\"\n")
    job = t.submit("-o args.out args.sh 'a b' c")
    t.equal("arguments-of-a-script", ("COMPLETED", "2 <a b> <c>\n"), (t.ended(job), t.text("args.out")))
    t.match("script-on-stdin", r"^Submitted batch job \d+$", t.out("sbatch -o stdin.out < args.sh"))
    t.match("script-as-dev-stdin", r"^\d+$", t.out("cat args.sh | sbatch --parsable -o dev.out /dev/stdin x"))
    t.match("here-document", r"^Submitted batch job \d+$",
            t.out("sbatch <<'EOF'\n#!/bin/bash\n#SBATCH --output=here.out  --job-name=\"here doc\"\n"
                  "#SBATCH\t-n 2\necho $SLURM_JOB_NAME $SLURM_NTASKS\nEOF"))
    for file, line in (("stdin.out", "0 <> <>"), ("dev.out", "1 <x> <>"), ("here.out", "here doc 2")):
        t.has_line(file, line)
    t.equal("exit-code-of-wait", 7, t.sh("sbatch --wait -o /dev/null --wrap 'exit 7'").returncode)
    t.equal("wait-says-killed", 128 + 9, t.sh("sbatch --wait -o /dev/null --wrap 'kill -9 $$'").returncode)
    t.match("test-only", r"^sbatch: Job \d+ to start at \S+ using 6 processors on nodes node\[01-02\] in partition batch$",
            t.sh("sbatch --test-only -N2 --ntasks-per-node=3 --wrap true").stderr)
    t.put("utf8.sh", "#!/bin/bash\n#SBATCH -J обучение --comment=\"ключ ✓\"\necho \"$SLURM_JOB_NAME — ✓\"\n")
    job = t.submit("-o utf8.out utf8.sh")
    t.ended(job)
    t.equal("utf-8-survives", "обучение — ✓\n", t.text("utf8.out"))
    t.equal("utf-8-in-squeue-under-C", "обучение|ключ ✓", t.out(f"LC_ALL=C squeue -h -t all -j {job} -o '%j|%k'"))


def output(t):
    job = t.submit("-J pat -o 'o-%x-%j-%N-%u-%%.txt' -e 'e-%J.txt' --wrap 'echo out; echo err >&2'")
    user = t.out("id -un")
    t.ended(job)
    node = t.out(f"sacct -X -n -P -o NodeList -j {job}")
    t.equal("patterns-of-names", ("out\n", "err\n"), (t.text(f"o-pat-{job}-{node}-{user}-%.txt"), t.text(f"e-{job}.txt")))
    job = t.submit("--array=3-5:2 -o 'arr-%A_%a.txt' --wrap 'echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT'")
    t.ended(job)
    t.equal("patterns-of-arrays", ("3 of 2\n", "5 of 2\n"), (t.text(f"arr-{job}_3.txt"), t.text(f"arr-{job}_5.txt")))
    job = t.submit("--array=1 --wrap 'echo default'")
    plain = t.submit("--wrap 'echo plain'")
    t.ended(job), t.ended(plain)
    t.equal("default-names", ("default\n", "plain\n"), (t.text(f"slurm-{job}_1.out"), t.text(f"slurm-{plain}.out")))
    job = t.submit("-N2 --ntasks-per-node=2 -o /dev/null --wrap 'srun -o st-%t-%n-%s.txt bash -c \"echo \\$SLURM_PROCID\"'")
    t.ended(job)
    t.equal("patterns-of-steps", ["0\n", "1\n", "2\n", "3\n"],
            [t.text(f"st-{rank}-{rank // 2}-0.txt") for rank in range(4)])
    os.makedirs(t.path("sub"), exist_ok=True)
    os.chmod(t.path("sub"), 0o777)
    job = t.submit("-D sub -o rel.txt --wrap 'pwd'")
    t.ended(job)
    t.equal("chdir", t.path("sub") + "\n", t.text("sub/rel.txt"))
    t.put("in.txt", "input line\n")
    job = t.submit("-i in.txt -o cat.txt --wrap cat")
    t.ended(job)
    t.equal("input-file", "input line\n", t.text("cat.txt"))
    t.put("keep.txt", "before\n")
    t.put("gone.txt", "before\n")
    for mode, file, want in (("append", "keep.txt", "before\nnow\n"), ("truncate", "gone.txt", "now\n")):
        t.ended(t.submit(f"--open-mode={mode} -o {file} --wrap 'echo now'"))
        t.equal("open-mode-" + mode, want, t.text(file))


def environment(t):
    def shown(words, **more):
        t.out(f"sbatch --wait -o env.txt {words} --wrap 'echo $ONE-$TWO-${{SLURM_JOB_ID:+id}}'", **more)
        return t.text("env.txt").strip()
    t.equal("export-all", "1-2-id", shown("", ONE="1", TWO="2"))
    t.equal("export-none", "--id", shown("--export=NONE", ONE="1"))
    t.equal("export-names", "1-x-id", shown("--export=ONE,TWO=x", ONE="1", TWO="2"))
    # The caller's own value goes before the given one (man sbatch).
    t.equal("export-all-and", "1-2-id", shown("--export=ALL,TWO=x", ONE="1", TWO="2"))
    t.equal("option-from-environment", "named", t.out(f"squeue -h -t all -o %j -j {t.out('sbatch --parsable -o /dev/null --wrap true', SBATCH_JOB_NAME='named')}"))


def arrays(t):
    t.put("tick.sh", "#!/bin/bash\ndate +%s.%N; sleep 0.15; date +%s.%N\n")
    job = t.submit("--array=0-4%2 -o 'tick-%a.txt' tick.sh")
    t.equal("array-completes", "COMPLETED", t.ended(job))
    spans = [tuple(float(x) for x in t.text(f"tick-{i}.txt").split()) for i in range(5)]
    at_once = max(sum(1 for b in spans if b[0] <= a[0] < b[1]) for a in spans)
    t.that("array-throttle", at_once <= 2, f"{at_once} at once: {spans}")
    job = t.submit("--array=1-3 -H -o /dev/null --wrap true")
    t.equal("held-array-folds", f"{job}_[1-3]|PENDING|JobHeldUser", t.out(f"squeue -h -j {job} -o '%i|%T|%r'"))
    t.out(f"scancel {job}_2")
    t.equal("element-cancelled", f"{job}_[1,3]", t.out(f"squeue -h -j {job} -o %i"))
    t.out(f"scontrol release {job}")
    t.ended(job)
    rows = t.out(f"sacct -X -n -P -o JobID,State -j {job}").split("\n")
    t.equal("array-in-sacct", [True, True], [f"{job}_{i}|COMPLETED" in rows for i in (1, 3)])


def placement(t):
    def nodes(words):
        job = t.submit(f"-H -o /dev/null {words} --wrap true")
        t.out(f"scontrol release {job}")
        t.ended(job)
        return t.out(f"sacct -X -n -P -o NodeList -j {job}")
    t.equal("nodelist", "node03", nodes("-w node03"))
    t.equal("exclude", "node03", nodes("-x node[01-02,04]"))
    t.equal("node-range", True, nodes("-N 2-3 -n 2").startswith("node["))
    t.match("constraint", r"^node0[34]$", nodes("-C intel"))
    t.match("constraint-and", r"^node0[12]$", nodes("-C 'ib&amd'"))
    t.match("constraint-or", r"^node0[1-4]$", nodes("-C 'intel|amd'"))
    t.match("gpu-type", r"^node0[34]$", nodes("--gres=gpu:h100:1"))
    t.match("partition", r"^node0[34]$", nodes("-p short"))
    job = t.submit("--exclusive -N1 -o /dev/null --wrap 'sleep 30'")
    t.running(job)
    t.equal("exclusive-takes-the-node", "16", t.out(f"squeue -h -j {job} -o %C"))
    node = t.out(f"squeue -h -j {job} -o %N")
    other = t.submit(f"-w {node} -o /dev/null --wrap true")
    t.equal("exclusive-keeps-others-out", "PENDING", t.out(f"squeue -h -j {other} -o %T"))
    t.out(f"scancel {job}")
    t.equal("runs-after-it", "COMPLETED", t.ended(other))
    job = t.submit("-n 3 -c 2 --mem-per-cpu=500M -o size.txt --wrap 'echo $SLURM_NTASKS $SLURM_CPUS_PER_TASK "
                   "$SLURM_JOB_CPUS_PER_NODE $SLURM_MEM_PER_CPU'")
    t.ended(job)
    t.equal("sizes", "3 2 6 500\n", t.text("size.txt"))
    t.equal("trace-of-sizes", "billing=6,cpu=6,mem=3000M,node=1",
            ",".join(sorted(t.out(f"sacct -X -n -P -o AllocTRES -j {job}").split(","))))
    job = t.submit("--mem=2G -o mem.txt --wrap 'echo $SLURM_MEM_PER_NODE'")
    t.ended(job)
    t.equal("memory", "2048\n", t.text("mem.txt"))


def devices(t):
    show = "'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS'"
    t.equal("gpus-of-a-job", "0,1|2|0,1",
            t.out("sbatch --wait -o gpu.txt --gres=gpu:2 --wrap 'echo \"$CUDA_VISIBLE_DEVICES|$SLURM_GPUS_ON_NODE|$SLURM_JOB_GPUS\"' "
                  ">/dev/null; cat gpu.txt"))
    t.equal("gpus-per-task", "0 0 0\n1 1 1\n2 2 2", t.out(f"srun -n3 --gpus-per-task=1 bash -c {show} | sort"))
    t.equal("gpus-per-node", "0 0,1 0,1\n1 0,1 0,1", t.out(f"srun -N2 -n2 --gpus-per-node=2 bash -c {show} | sort"))
    t.equal("no-gpus-asked", "0", t.out(f"srun bash -c {show}").strip())
    held = t.submit("-w node04 --gpus=3 -o /dev/null --wrap 'sleep 30'")
    t.running(held)
    t.equal("next-job-gets-the-rest", "3", t.out("srun -w node04 --gpus=1 bash -c 'echo $CUDA_VISIBLE_DEVICES'"))
    last = t.submit("-w node04 --gres=gpu:2 -o /dev/null --wrap true")
    t.equal("more-than-the-rest-waits", "PENDING", t.out(f"squeue -h -j {last} -o %T"))
    t.out(f"scancel {held}")
    t.equal("then-runs", "COMPLETED", t.ended(last))


def dependencies(t):
    first = t.submit("-H -o /dev/null --wrap 'exit 3'")
    wants = {kind: t.submit(f"-d {kind}:{first} -o /dev/null --wrap true")
             for kind in ("afterok", "afternotok", "afterany", "after")}
    t.equal("dependency-waits", {"Dependency"},
            set(t.out("squeue -h -o %r -j " + ",".join(map(str, wants.values()))).split("\n")))
    t.out(f"scontrol release {first}")
    t.equal("first-fails", "FAILED", t.ended(first))
    for kind in ("afternotok", "afterany", "after"):
        t.equal("dependency-" + kind, "COMPLETED", t.ended(wants[kind]))
    t.equal("dependency-afterok-never", "DependencyNeverSatisfied", t.out(f"squeue -h -j {wants['afterok']} -o %r"))
    t.out(f"scancel {wants['afterok']}")
    one = t.submit("-J alone -o alone.txt --wrap 'date +%s.%N; sleep 0.3; date +%s.%N'")
    two = t.submit("-J alone -d singleton -o alone2.txt --wrap 'date +%s.%N'")
    t.ended(one), t.ended(two)
    t.that("dependency-singleton", float(t.text("alone2.txt")) >= float(t.text("alone.txt").split()[1]))


def at_once_in_sacct(t):
    missing = []
    for _ in range(10):
        job = t.submit("-o /dev/null --wrap true")
        if not t.out(f"sacct -X -n -P -o JobID,State -j {job}").startswith(f"{job}|"):
            missing.append(job)
        if not t.out(f"squeue -h -t all -j {job} -o %i") == str(job):
            missing.append(job)
    t.equal("read-your-writes", [], missing)


def time_limits(t, jobs):
    t.equal("time-limit", "TIMEOUT", t.ended(jobs["limit"], 90))
    t.match("time-limit-sends-term", r"^TERM after 5[5-9]|^TERM after 6", t.text("limit.txt"))
    t.match("time-limit-is-said", r"^slurmstepd-node\d+: error: \*\*\* JOB \d+ ON node\d+ CANCELLED AT \S+ DUE TO TIME LIMIT \*\*\*$",
            t.text("limit.txt"))
    t.match("warning-to-the-batch-shell", r"^USR1 after ([89]|1\d)$", t.text("warn.txt"))
    t.match("warning-to-the-steps", r"^step USR2 after ([89]|1\d)$", t.text("warn_step.txt"))
    t.equal("warning-not-to-the-shell", False, "shell" in t.text("warn_step.txt"))


def run(t):
    # These take their minute while the others run.
    t.put("limit.sh", "#!/bin/bash\ntrap 'echo TERM after $SECONDS; exit 0' TERM\nwhile :; do sleep 0.2; done\n")
    t.put("warn.sh", "#!/bin/bash\ntrap 'echo USR1 after $SECONDS; exit 0' USR1\nwhile :; do sleep 0.2; done\n")
    t.put("warn_step.sh", "#!/bin/bash\ntrap 'echo shell' USR2\nsrun bash -c 'trap \"echo step USR2 after \\$SECONDS; exit 0\" USR2; "
                          "while :; do sleep 0.2; done'\n")
    jobs = {"limit": t.submit("-t 1 -o limit.txt limit.sh"),
            "warn": t.submit("-t 1 --signal=B:USR1@50 -o warn.txt warn.sh"),
            "step": t.submit("-t 1 --signal=USR2@50 -o warn_step.txt warn_step.sh")}
    for part in (scripts, output, environment, arrays, placement, devices, dependencies, at_once_in_sacct):
        t.section(part)
    t.section(lambda checks: time_limits(checks, jobs))


if __name__ == "__main__":
    main(run, "--slurm-conf", os.path.join(TOP, "tests/data/kinds/slurm.conf"))
