"""Writes docs/performance.md from the JSON lines that bench/run collected."""
import json
import os
import platform
import time


def dig(record, path):
    for key in path.split("."):
        if not isinstance(record, dict) or key not in record:
            return None
        record = record[key]
    return record


# (title, measure, value's path or function, unit, whether more is better, wanted factor)
ROWS = [
    ("`sbatch`, wall", "submit-latency", "wall_ms.median", "ms", False, 4),
    ("`sbatch`, client CPU", "submit-latency", "client_cpu_ms.median", "ms", False, 4),
    ("1000 `sbatch` in sequence", "submit-seq", "jobs_per_s", "jobs/s", True, 5),
    ("1000 `sbatch` from 8 clients", "submit-par", "jobs_per_s", "jobs/s", True, 10),
    ("durable submissions, `POST /v1/workloads`, batches of 100", "durable-submissions", "jobs_per_s", "jobs/s", True, None),
    ("idle cluster: `sbatch` to first line of the script, median", "start-latency", "wall_ms.median", "ms", False, None),
    ("`srun hostname`, first output, median", "srun-latency", "first_output_ms.median", "ms", False, None),
    ("64 ranks on 8 nodes, last rank up, median", "gang", "last_rank_ms.median", "ms", False, None),
    ("1000 trivial jobs executed", "drain:done", "jobs_per_s", "jobs/s", True, 8),
    ("... CPU of all daemons and steps a job", "drain:done", lambda r: per_job_ms(r), "ms", False, 10),
    ("5000 jobs allocated on 1000 planned nodes", "drain:started", "jobs_per_s", "jobs/s", True, 50),
    ("controller memory per pending job, `sbatch` of one script", "queue-fill",
     lambda r: round(r["rss_kb_per_job"] * 1024), "bytes", False, None),
    ("controller memory per pending job, 4 kB script and environment each", "memory-per-job", "bytes_per_job", "bytes", False, None),
    ("`squeue` with 11,000 jobs", "squeue", "default.wall_ms.median", "ms", False, 10),
    ("`squeue --json` with 11,000 jobs", "squeue", "json.wall_ms.median", "ms", False, 10),
    ("answering again after `kill -9`, 10,000 jobs queued", "restart", "answers_after_s", "s", False, None),
]
WANTED = {  # absolute, by title's beginning
    "durable submissions": ("≥ 20,000 jobs/s", lambda v: v >= 20000),
    "idle cluster": ("≤ 25 ms", lambda v: v <= 25),
    "`srun hostname`": ("≤ 25 ms", lambda v: v <= 25),
    "64 ranks": ("≤ 250 ms", lambda v: v <= 250),
    "controller memory": ("≤ 1024 bytes", lambda v: v <= 1024),
    "answering again": ("≤ 0.5 s", lambda v: v <= 0.5),
}


def per_job_ms(record):
    done = record.get("done") or 0
    return round(record["daemon_cpu_s"]["all_daemons"] / done * 1000, 2) if done else None


def load(path):
    """(product, measure) -> the best suited record; drains are told apart by what they wait for."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            product = record["label"].split()[0]
            measure = record["measure"] + (":" + record["until"] if record["measure"] == "drain" else "")
            if measure == "durable-submissions":
                old = found.get((product, measure))
                if old and old["jobs_per_s"] > record["jobs_per_s"]:
                    continue
            if measure == "restart" and (product, measure) in found:
                continue  # the first is of the same kind of jobs for both products
            found[(product, measure)] = record
    return found


def value_of(found, product, measure, path):
    record = found.get((product, measure))
    if record is None:
        return None
    try:
        return path(record) if callable(path) else dig(record, path)
    except (KeyError, TypeError):
        return None


def shown(value, unit):
    if value is None:
        return ""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}"


def row(found, entry):
    title, measure, path, unit, more_is_better, factor = entry
    slurm, tutti = (value_of(found, product, measure, path) for product in ("slurm", "tutti"))
    ratio = None
    if slurm and tutti:
        ratio = tutti / slurm if more_is_better else slurm / tutti
    wanted, reached = "", None
    if factor:
        wanted = f"{factor} ×"
        reached = None if ratio is None else ratio >= factor
    for beginning, (text, test) in WANTED.items():
        if title.startswith(beginning):
            wanted, reached = text, None if tutti is None else test(tutti)
    mark = {True: "reached", False: "**missed**", None: ""}[reached]
    return f"| {title} | {shown(slurm, unit)} | {shown(tutti, unit)} | {f'{ratio:.3g} ×' if ratio else ''} | {wanted} | {mark} |"


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "")
    except OSError:
        model = ""
    with open("/proc/meminfo", encoding="utf-8") as file:
        memory = int(file.readline().split()[1]) // 1048576
    return f"{os.cpu_count()} × {model or platform.machine()}, {memory} GiB, Linux {platform.release()}"


TEXT = """# Performance

Written by `bench/run --peer`{scaled} on {date}: {machine}. Both products ran one after the other on this
machine, their daemons and clients above other work (`chrt -r 1`) where that was allowed. Absolute times belong to
this machine; the ratio is how many times better Tutti is.

| measure | Slurm 22.05 | Tutti | ratio | wanted | |
|---|---|---|---|---|---|
{rows}

How each is taken: `bench/run` (clusters), `bench/own.py` (the interface spoken directly) and the peer's
`bench.py` (commands timed from outside, the same for both). Slurm has its tuned `SchedulerParameters` where they
help it: start latency, trivial jobs, planned nodes. CPU of daemons counts controller, agents, supervisors
and steps, by cpuacct groups. Memory is the growth of the controller's resident set. Raw results: one JSON line
a measure, in `build/bench/results.jsonl` after a run.
"""


def write(results, path, scale=1.0):
    found = load(results)
    rows = "\n".join(row(found, entry) for entry in ROWS)
    scaled = "" if scale == 1.0 else f" --scale {scale:g}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(TEXT.format(scaled=scaled, date=time.strftime("%Y-%m-%d"), machine=machine(), rows=rows))
