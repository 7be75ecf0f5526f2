#!/usr/bin/env python3
# srun and salloc in the hands of a person: terminals, window sizes, Ctrl-C, allocations that come
# and go; steps side by side, steps that fail.
# time-limit: 240
import fcntl
import struct
import termios
import time

from checks import Terminal, main
from cluster import wait_for


def terminals(t):
    shell = Terminal(t, "stty rows 33 cols 101; srun --pty bash --norc --noprofile")
    shell.read(r"[$#] ")
    shell.write("tty; stty size; hostname; echo \"<$SLURM_JOB_ID>\"\n")
    shell.read(r"/dev/pts/\d+\r\n33 101\r\nnode0[12]\r\n<\d+>")
    t.that("pty-is-a-terminal-of-the-same-size", True)
    fcntl.ioctl(shell.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 77, 0, 0))
    time.sleep(0.3)
    shell.write("stty size\n")
    shell.read(r"20 77")
    t.that("pty-follows-the-window", True)
    shell.write("sleep 100\n")
    time.sleep(0.3)
    shell.write("\x03")
    shell.read(r"[$#] ")
    shell.write("echo after $?\n")
    shell.read(r"after 130")
    t.that("pty-ctrl-c-goes-to-the-program", True)
    shell.write("cat\n")
    time.sleep(0.2)
    shell.write("typed\n\x04")
    shell.read(r"typed\r\ntyped")
    t.that("pty-ctrl-d-ends-the-input", True)
    shell.write("exit 7\n")
    t.equal("pty-exit-code", 7, shell.end())
    # The terminal is as it was.
    again = Terminal(t, "srun --pty true; stty -a")
    t.equal("terminal-is-restored", 0, again.end())
    t.match("echo-is-on-again", r" echo ", again.seen)
    plain = Terminal(t, "srun bash -c 'test -t 1 || echo no terminal'")
    t.equal("without-pty-a-pipe", (0, True), (plain.end(), "no terminal" in plain.seen))


def interrupts(t):
    run = Terminal(t, "srun -n 2 bash -c 'echo started; sleep 100'")
    run.read(r"started[\s\S]*started")
    run.write("\x03")
    run.read(r"srun: interrupt \(one more within 1 sec to abort\)\r\nsrun: StepId=\d+\.0 is running")
    time.sleep(1.3)
    run.write("\x03")
    run.read(r"srun: interrupt \(one more")
    run.write("\x03")
    run.read(r"srun: aborting")
    t.that("ctrl-c-twice-aborts", run.end() != 0, run.seen)
    quick = Terminal(t, "srun --quit-on-interrupt bash -c 'echo started; sleep 100'")
    quick.read(r"started")
    quick.write("\x03")
    t.that("quit-on-interrupt", quick.end() != 0)
    held = t.submit("--exclusive -N2 -o /dev/null --wrap 'sleep 100'")
    t.running(held)
    waits = Terminal(t, "srun --exclusive true")
    job = waits.read(r"srun: job (\d+) queued and waiting for resources")[1]
    waits.write("\x03")
    t.equal("ctrl-c-while-it-waits", 1, waits.end())
    t.match("revoked", r"allocation \d+ has been revoked", waits.seen)
    t.equal("and-is-cancelled", "CANCELLED", t.ended(int(job)))
    t.refused("immediate", "srun --immediate --exclusive true", r"Unable to allocate resources: Requested nodes are busy")
    t.out(f"scancel {held}")
    t.ended(held)


def allocations(t):
    shell = Terminal(t, "SHELL=/bin/sh salloc -N2 -n2 -J alloc")
    job = shell.read(r"salloc: Granted job allocation (\d+)")[1]
    shell.write("echo id $SLURM_JOB_ID $SLURM_NNODES $SLURM_NTASKS $SLURM_JOB_NODELIST on $(hostname | grep -c node)\n")
    shell.read(rf"id {job} 2 2 node\[01-02\] on 0")
    t.that("salloc-starts-a-shell-here", True)
    shell.write("srun hostname | sort | xargs echo got\n")
    shell.read(r"got node01 node02")
    t.that("srun-inside-uses-all-of-it", True)
    shell.write("srun -N1 -n1 -w node02 hostname\n")
    shell.read(r"node02\r\n[\s\S]*[$#] ")  # until then srun takes what is typed
    shell.write("srun --pty -N1 -n1 tty\n")
    shell.read(r"/dev/pts/\d+\r\n[\s\S]*[$#] ")
    shell.write("srun --pty -N1 -n1 tty\n")
    shell.read(r"/dev/pts/\d+\r\n[\s\S]*[$#] ")
    t.that("srun-pty-inside-twice", True)
    shell.write("exit 5\n")
    shell.read(rf"salloc: Relinquishing job allocation {job}")
    t.equal("salloc-has-the-shell's-exit-code", 5, shell.end())
    t.ended(int(job))
    t.equal("steps-of-it", 5, len(t.out(f"sacct -n -P -o JobID -j {job}").split("\n")))
    # Ended from outside.
    shell = Terminal(t, "SHELL=/bin/sh salloc -n1")
    job = shell.read(r"Granted job allocation (\d+)")[1]
    t.out(f"scancel {job}")
    shell.read(rf"salloc: Job allocation {job} has been revoked")
    shell.write("exit\n")
    shell.end()
    t.equal("cancelled-allocation", "CANCELLED", t.ended(int(job)))
    done = t.sh("salloc -n1 --no-shell")
    t.match("no-shell", r"Granted job allocation \d+", done.stderr)
    job = done.stderr.split()[-1]
    t.equal("no-shell-lives-on", "0 1", t.out(f"srun --jobid={job} -n1 bash -c 'echo $SLURM_STEP_ID' | xargs; ").strip() + " 1")
    t.out(f"scancel {job}")
    t.ended(int(job))
    done = t.sh("salloc -n2 bash -c 'srun -n2 -l hostname | sort; exit 3'")
    t.that("salloc-with-a-command", done.returncode == 3 and done.stdout.startswith("0: node0"), done.stdout + done.stderr)
    t.match("salloc-says-so", r"(?s)Granted job allocation (\d+).*Relinquishing job allocation \1", done.stderr)


def steps(t):
    # Two steps side by side, then one after both; their codes come back through `wait`.
    t.put("side.sh", "#!/bin/bash\nfor node in 1 2; do\n  srun -N1 -n1 --exact bash -c \"touch here.$node; while [ ! -e here.$((3 - node)) ]; "
                     "do sleep 0.05; done; exit $node\" &\n  pids[$node]=$!\ndone\nwait ${pids[1]}; echo one $?\nwait ${pids[2]}; echo two $?\n"
                     "srun -n2 bash -c 'echo last $SLURM_STEP_ID'\n")
    job = t.submit("-N2 -n2 -o side.out side.sh")
    t.equal("background-steps", "COMPLETED", t.ended(job))
    t.equal("background-steps-codes", ["last 2", "last 2", "one 1", "two 2"],
            sorted(line for line in t.text("side.out").split("\n") if line and not line.startswith("srun:")))
    # More steps than fit wait for their turn.
    t.put("queue.sh", "#!/bin/bash\nfor i in 1 2 3 4; do srun -N1 -n1 --exact bash -c 'echo b; sleep 0.3; echo e' >>turns.txt & done; wait\n")
    job = t.submit("-n2 -N1 -c1 -o /dev/null queue.sh")
    t.equal("steps-queue-up", "COMPLETED", t.ended(job))
    running = most = 0
    for line in t.text("turns.txt").split():
        running += 1 if line == "b" else -1
        most = max(most, running)
    t.equal("two-at-once", (2, 4), (most, t.text("turns.txt").count("b")))
    # -W: the others get that long after the first has ended.
    begun = time.monotonic()
    done = t.sh("srun -n3 -W 1 bash -c '[ $SLURM_PROCID = 0 ] && exit 0; sleep 60'")
    t.that("wait-ends-the-others", done.returncode != 0 and time.monotonic() - begun < 30, done.stderr)
    t.match("wait-says-so", r"First task exited 1s ago", done.stderr)
    begun = time.monotonic()
    done = t.sh("srun -n3 -K bash -c '[ $SLURM_PROCID = 1 ] && exit 9; sleep 60'")
    t.that("kill-on-bad-exit", done.returncode != 0 and time.monotonic() - begun < 30, done.stderr)
    t.match("kill-on-bad-exit-says-so", r"task 1: Exited with exit code 9", done.stderr)
    done = t.sh("srun -n3 bash -c 'exit $((SLURM_PROCID + 4))'")
    t.equal("worst-code", 6, done.returncode)
    t.equal("no-kill-by-default", "a\nb", t.out("srun -n2 bash -c '[ $SLURM_PROCID = 0 ] && { echo a; exit 1; }; sleep 0.5; echo b' 2>/dev/null || true"))
    t.equal("label", "0: x\n1: x", t.out("srun -l -n2 echo x | sort"))
    t.out("srun -l -n2 -o all.txt bash -c 'echo x; echo y >&2; printf z'")
    t.equal("label-in-a-file", ["0: x", "0: y", "0: z", "1: x", "1: y", "1: z"], sorted(t.text("all.txt").strip().split("\n")))
    t.out("srun -l -n2 -o out-%t.txt -e err-%t.txt bash -c 'echo x; echo y >&2'")
    t.equal("label-in-files", ["0: x\n", "1: x\n", "0: y\n", "1: y\n"], [t.text(f"{k}-{r}.txt") for k in ("out", "err") for r in (0, 1)])
    t.equal("input-to-all", "in\nin", t.out("echo in | srun -n2 cat"))
    t.equal("input-to-one", "0 in", t.out("echo in | srun -n2 -i 0 bash -c 'read x && echo $SLURM_PROCID $x || true'"))


def run(t):
    for part in (terminals, interrupts, allocations, steps):
        t.section(part)


if __name__ == "__main__":
    main(run, "--nodes", "2", "--cpus", "8", "--gpus", "h100:2")
