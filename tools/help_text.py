"""Reads what the commands say to --help, for tools/make-completions and tools/make-man.

Two forms occur: `tutti` (options with their text in a second column) and the Slurm-named commands
(`-A, --account=VALUE`). Nothing is known here that the commands do not say.
"""
import os
import re
import subprocess

SLURM_COMMANDS = ["sbatch", "srun", "salloc", "scancel", "squeue", "sinfo", "sacct", "scontrol", "sprio", "sdiag"]

OPTION = re.compile(r"^\s+(?:-(?P<letter>\w)(?:,\s*|(?=\s|$)))?(?P<long>--[A-Za-z][\w-]*)?(?P<attached>\[?=\S+)?"
                    r"(?P<apart> [A-Z<][^\s]*)?(?:\s{2,}(?P<text>\S.*))?$")


class Option:
    def __init__(self, letter, long, argument, text, section):
        self.letter, self.long, self.argument, self.text, self.section = letter, long, argument, text, section

    @property
    def needs_value(self):
        return bool(self.argument) and not self.argument.startswith("[")


class Help:
    """One command: summary, usage, options, positionals, subcommands (name, text), and first words (scontrol)."""

    def __init__(self, name, text):
        self.name, self.summary, self.usage, self.footer = name, "", "", []
        self.options, self.positionals, self.subcommands, self.words = [], [], [], []
        section = ""
        for line in text.splitlines():
            heading = re.match(r"^(\S.*):$", line)
            if line.startswith("Usage:"):
                self.usage = line.split(":", 1)[1].strip()
            elif heading:
                section = heading.group(1)
            elif line and not line.startswith(" "):
                if section:
                    self.footer.append(line)
                elif not self.summary:
                    self.summary = line.rstrip(".")
            elif line.strip():
                self._entry(line, section)

    def _entry(self, line, section):
        if section == "Commands":
            self.words += line.split()
            return
        match = OPTION.match(line)
        if match and (match.group("letter") or match.group("long")):
            argument = match.group("attached") or (match.group("apart") or "").strip()
            text = match.group("text") or ""
            self.options.append(Option(match.group("letter"), match.group("long"), argument.replace(":POSITIVE", ""),
                                       text.strip(), section))
            return
        pair = re.match(r"^\s{2}(\S+)(?:\s+[A-Z]+(?: \.\.\.)?(?: REQUIRED)?)?\s{2,}(\S.*)$", line)
        if pair and section == "Subcommands":
            self.subcommands.append(pair.groups())
        elif pair and section == "Positionals":
            self.positionals.append(pair.groups())
        elif re.match(r"^\s{10,}\S", line):  # a text that went on in the next line
            if section == "Subcommands" and self.subcommands:
                self.subcommands[-1] = (self.subcommands[-1][0], f"{self.subcommands[-1][1]} {line.strip()}")
            elif self.options and self.options[-1].section == section:
                self.options[-1].text = f"{self.options[-1].text} {line.strip()}".strip()


def read_help(folder, *words):
    """The Help of a command of the folder; raises RuntimeError if it does not exit 0."""
    environment = {k: v for k, v in os.environ.items() if k not in ("TUTTI_STATE", "SLURM_CONF")}
    run = subprocess.run([os.path.join(folder, words[0]), *words[1:], "--help"], capture_output=True, text=True,
                         env=environment, stdin=subprocess.DEVNULL, timeout=20, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} --help: exit status {run.returncode}: {run.stderr.strip()}")
    return Help(" ".join(words), run.stdout)


def read_all(folder):
    """name -> Help of `tutti`, of each of its subcommands (`tutti up`) and of the Slurm-named ones."""
    found = {"tutti": read_help(folder, "tutti")}
    for name, _ in found["tutti"].subcommands:
        found["tutti " + name] = read_help(folder, "tutti", name)
    for name in SLURM_COMMANDS:
        found[name] = read_help(folder, name)
    return found
