#!/usr/bin/env python3
"""Completion scripts and manual pages are made from --help, are well formed, and complete something."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/tools"))
sys.path.insert(0, os.path.join(TOP, "tools"))
from help_text import SLURM_COMMANDS, Help, read_all  # noqa: E402
from lines import LineResult  # noqa: E402

BIN = os.environ.get("TUTTI_BIN", os.path.join(TOP, "build/release/bin"))
BASH = r"""
compopt() { :; }
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tutti
printf '%s\n' "${COMPREPLY[@]}"
"""


class PackagingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.share = tempfile.mkdtemp()
        for tool in ("make-completions", "make-man"):
            subprocess.run([os.path.join(TOP, "tools", tool), BIN, cls.share], check=True)
        cls.found = read_all(BIN)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.share)

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(f"no {program} here")

    def run_ok(self, *words):
        run = subprocess.run(words, capture_output=True, text=True, check=False,
                             env={**os.environ, "PATH": BIN + ":" + os.environ["PATH"]})
        self.assertEqual((run.returncode, run.stderr), (0, ""), words)
        return run.stdout

    def complete(self, *words):
        return self.run_ok("bash", "-c", BASH, "bash", f"{self.share}/bash-completion/completions/tutti", *words).split()

    def test_help_says_what_it_offers(self):
        for name, entry in self.found.items():
            self.assertTrue(entry.summary and entry.usage, name)
        names = [n for n, _ in self.found["tutti"].subcommands]
        for name in ("up", "down", "run", "why", "top", "logs", "lint", "doctor"):
            self.assertIn(name, names)
        for name in ("sbatch", "srun", "salloc", "squeue", "scancel", "sinfo", "sacct"):
            self.assertGreater(len([o for o in self.found[name].options if o.long]), 5, name)

    def test_bash_completes(self):
        self.assertEqual(self.complete("tutti", "dow"), ["down"])
        self.assertEqual(self.complete("tutti", "up", "--slurm"), ["--slurm-conf="])
        self.assertIn("--nodes=", self.complete("sbatch", "--nod"))
        self.assertEqual(self.complete("tutti", "sbatch", "--gpus-per-n"), ["--gpus-per-node="])
        self.assertEqual(self.complete("scontrol", "upd"), ["update"])

    def test_every_long_option_completes_in_bash(self):
        for name, entry in self.found.items():
            if name == "tutti":
                continue
            offered = {w.rstrip("=") for w in self.complete(*name.split(), "--")}
            self.assertEqual(offered, {o.long for o in entry.options if o.long}, name)

    def test_zsh_reads_its_script(self):
        self.need("zsh")
        self.run_ok("zsh", "-n", f"{self.share}/zsh/site-functions/_tutti")

    def test_fish_reads_its_scripts_and_completes(self):
        self.need("fish")
        for path in glob.glob(f"{self.share}/fish/vendor_completions.d/*.fish"):
            self.run_ok("fish", "--no-config", "-n", path)
        said = self.run_ok("fish", "--no-config", "-c", f"source {self.share}/fish/vendor_completions.d/tutti.fish; "
                           "complete -C 'tutti dow'")
        self.assertTrue(said.startswith("down\t"), said)

    def test_manual_pages_are_well_formed(self):
        self.need("groff")
        for name in ["tutti", *SLURM_COMMANDS]:
            self.run_ok("groff", "-man", "-ww", "-z", f"{self.share}/man/man1/{name}.1")

    def test_manual_pages_name_the_options(self):
        self.need("man")
        for name in ["tutti", *SLURM_COMMANDS]:
            path = f"{self.share}/man/man1/{name}.1"
            text = subprocess.run(["man", "--nh", "-Tascii", "-l", path], capture_output=True, text=True, check=True,
                                  env={**os.environ, "MANWIDTH": "200", "GROFF_NO_SGR": "1"}).stdout
            plain = "".join(c for i, c in enumerate(text) if c != "\b" and text[i + 1:i + 2] != "\b")
            for option in self.found[name].options:
                if option.long and name != "tutti":
                    self.assertIn(option.long, plain, name)

    def test_both_forms_of_help_are_read(self):
        entry = Help("x", "Says.\nUsage: x [OPTIONS]\n\nOptions:\n  -h,--help       Help\n  --size UINT:POSITIVE\n"
                          "                  A long\n                  text\n  -A, --account=VALUE\n      --bell[=VALUE]\n  -v\n")
        self.assertEqual([(o.letter, o.long, o.argument, o.text) for o in entry.options],
                         [("h", "--help", "", "Help"), (None, "--size", "UINT", "A long text"),
                          ("A", "--account", "=VALUE", ""), (None, "--bell", "[=VALUE]", ""), ("v", None, "", "")])


if __name__ == "__main__":
    if not os.path.exists(os.path.join(BIN, "tutti")):
        print(f"not ok completions (no {BIN}/tutti: build first)")
        sys.exit(1)
    sys.exit(LineResult.run(PackagingTest))
