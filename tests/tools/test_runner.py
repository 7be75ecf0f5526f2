#!/usr/bin/env python3
"""tests/run.py counts what programs say, and does not take silence for success."""
import contextlib
import importlib.util
import io
import os
import stat
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from lines import LineResult  # noqa: E402

spec = importlib.util.spec_from_file_location("run", os.path.join(HERE, "../run.py"))
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)


class RunnerTest(unittest.TestCase):
    def counts(self, script, kind="lines", limit=20):
        with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as file:
            file.write("#!/bin/sh\n" + script)
        self.addCleanup(os.unlink, file.name)
        os.chmod(file.name, stat.S_IRWXU)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            counts = run.run_group(run.Group("g", [file.name], kind, limit), dict(os.environ))
        self.printed = out.getvalue()
        return counts.passed, len(counts.failed), len(counts.skipped)

    def test_lines(self):
        self.assertEqual(self.counts("echo ok a; echo ok b; echo skip c '# no GPU'; echo noise"), (2, 0, 1))
        self.assertIn("skip g c # no GPU", self.printed)

    def test_a_failed_line_shows_the_output(self):
        self.assertEqual(self.counts("echo because of this; echo not ok a; echo ok b; exit 1"), (1, 1, 0))
        self.assertIn("because of this", self.printed)

    def test_an_exit_status_without_a_failed_line_is_a_failure(self):
        self.assertEqual(self.counts("echo ok a; exit 3"), (1, 1, 0))
        self.assertIn("exit status 3", self.printed)

    def test_silence_is_a_failure(self):
        self.assertEqual(self.counts("true"), (0, 1, 0))

    def test_a_time_limit(self):
        self.assertEqual(self.counts("echo ok a; exec sleep 60", limit=0.3), (1, 1, 0))
        self.assertIn("time limit", self.printed)

    def test_googletest(self):
        script = "\n".join(f"echo '{line}'" for line in (
            "[ RUN      ] A.one", "[       OK ] A.one (0 ms)",
            "[ RUN      ] A.two", "x.cpp:3: Failure", "[  FAILED  ] A.two, where GetParam() = 3 (1 ms)",
            "[ RUN      ] A.three", "x.cpp:9: Skipped", "no GPU here", "", "[  SKIPPED ] A.three (0 ms)",
            "[  FAILED  ] A.two, where GetParam() = 3"))
        self.assertEqual(self.counts(script + "\nexit 1", "gtest"), (1, 1, 1))
        self.assertIn("skip g A.three # no GPU here", self.printed)

    def test_a_crash_inside_googletest(self):
        self.assertEqual(self.counts("echo '[ RUN      ] A.one'; kill -SEGV $$", "gtest"), (0, 1, 0))
        self.assertIn("A.one", self.printed)


if __name__ == "__main__":
    sys.exit(LineResult.run(RunnerTest))
