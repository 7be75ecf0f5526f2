#!/usr/bin/env python3
"""bench/table.py: ratios point the right way, absent values stay empty, missed aims are marked."""
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "../../bench"))
import own  # noqa: E402
import table  # noqa: E402
from lines import LineResult  # noqa: E402


def table_of(*records):
    with tempfile.TemporaryDirectory() as folder:
        results, out = os.path.join(folder, "r.jsonl"), os.path.join(folder, "t.md")
        with open(results, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(r) + "\n" for r in records)
        table.write(results, out)
        with open(out, encoding="utf-8") as file:
            rows = [[c.strip() for c in line.strip().strip("|").split("|")] for line in file if line.startswith("| ")]
    return {r[0]: r[1:] for r in rows}


class TableTest(unittest.TestCase):
    def test_less_is_better(self):
        rows = table_of({"measure": "submit-latency", "label": "slurm default", "wall_ms": {"median": 20}},
                        {"measure": "submit-latency", "label": "tutti default", "wall_ms": {"median": 4}})
        self.assertEqual(rows["`sbatch`, wall"], ["20 ms", "4 ms", "5 ×", "4 ×", "reached"])
        self.assertEqual(rows["`sbatch`, client CPU"], ["", "", "", "4 ×", ""])

    def test_more_is_better_and_a_missed_aim(self):
        rows = table_of({"measure": "submit-seq", "label": "slurm default", "jobs_per_s": 50},
                        {"measure": "submit-seq", "label": "tutti default", "jobs_per_s": 200})
        self.assertEqual(rows["1000 `sbatch` in sequence"], ["50 jobs/s", "200 jobs/s", "4 ×", "5 ×", "**missed**"])

    def test_absolute_aims_and_the_best_of_several(self):
        rows = table_of({"measure": "durable-submissions", "label": "tutti own", "jobs_per_s": 30000},
                        {"measure": "durable-submissions", "label": "tutti own", "jobs_per_s": 12000},
                        {"measure": "restart", "label": "tutti planned", "answers_after_s": 0.9},
                        {"measure": "restart", "label": "tutti own", "answers_after_s": 0.1})
        self.assertEqual(rows["durable submissions, `POST /v1/workloads`, batches of 100"],
                         ["", "30,000 jobs/s", "", "≥ 20,000 jobs/s", "reached"])
        self.assertEqual(rows["answering again after `kill -9`, 10,000 jobs queued"],
                         ["", "0.9 s", "", "≤ 0.5 s", "**missed**"])

    def test_drains_are_told_apart(self):
        common = {"measure": "drain", "label": "tutti tuned", "n": 1000, "done": 1000}
        rows = table_of({**common, "until": "done", "jobs_per_s": 100, "daemon_cpu_s": {"all_daemons": 5.0}},
                        {**common, "until": "started", "jobs_per_s": 7000, "daemon_cpu_s": {"all_daemons": 1.0}})
        self.assertEqual(rows["1000 trivial jobs executed"][1], "100 jobs/s")
        self.assertEqual(rows["... CPU of all daemons and steps a job"][1], "5 ms")
        self.assertEqual(rows["5000 jobs allocated on 1000 planned nodes"][1], "7,000 jobs/s")

    def test_requests_are_whole_http_and_distinct(self):
        encoded = own.request([own.big_submission(1), own.big_submission(2)])
        head, body = encoded.split(b"\r\n\r\n", 1)
        self.assertIn(f"Content-Length: {len(body)}".encode(), head)
        one, two = json.loads(body)["submissions"]
        self.assertGreater(len(one["script"]), 4000)
        self.assertGreater(len(one["environment"]), 4000)
        self.assertNotEqual(one["script"], two["script"])
        self.assertNotEqual(one["environment"], two["environment"])


if __name__ == "__main__":
    sys.exit(LineResult.run(TableTest))
