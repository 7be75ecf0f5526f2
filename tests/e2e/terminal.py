"""A command on a pseudo-terminal: types what the script says and shows what was seen.

terminal.py SECONDS WAIT_FOR TYPE [WAIT_FOR TYPE]... -- COMMAND...
WAIT_FOR is text (empty: at once); TYPE knows \\x02 and the like. Exits with the command's status.
"""
import os, pty, select, sys, time

split = sys.argv.index("--")
limit, script, command = float(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1:]
pid, master = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = b""
end = time.monotonic() + limit
steps = [(script[i].encode(), script[i + 1].encode().decode("unicode_escape").encode("latin1"))
         for i in range(0, len(script), 2)]
while True:
    while steps and steps[0][0] in seen:
        os.write(master, steps.pop(0)[1])
    ready, _, _ = select.select([master], [], [], max(0, end - time.monotonic()))
    if not ready:
        print(seen.decode(errors="replace"))
        print("terminal.py: time is over")
        os.kill(pid, 9)
        sys.exit(99)
    try:
        data = os.read(master, 65536)
    except OSError:
        data = b""
    if not data:
        break
    seen += data
_, status = os.waitpid(pid, 0)
print(seen.decode(errors="replace"))
sys.exit(os.waitstatus_to_exitcode(status) & 255)
