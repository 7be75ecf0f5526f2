"""Measures that only Tutti has: its interface spoken directly, over the Unix socket of a cluster."""
import hashlib
import json
import os
import socket
import threading
import time

BATCH = 100


def read_pids(state):
    """name -> pid, as STATE/pids says."""
    with open(os.path.join(state, "pids"), encoding="utf-8") as file:
        return {line.split()[0]: int(line.split()[1]) for line in file if len(line.split()) == 2}


def replace_pid(state, name, pid):
    path = os.path.join(state, "pids")
    with open(path, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith(name + " ")]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines([*lines, f"{name} {pid}\n"])


def memory_kb(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("VmRSS"):
                return int(line.split()[1])
    raise RuntimeError(f"no VmRSS of process {pid}")


def workload(number):
    return {"name": f"bench{number}", "user": "root", "uid": os.getuid(), "gid": os.getgid(), "hold": "user",
            "time_limit_ms": 3_600_000, "launch": {"work_dir": "/tmp", "stdout_path": "/dev/null"}}


def request(submissions):
    """The bytes of one POST /v1/workloads."""
    body = json.dumps({"submissions": submissions}).encode()
    head = f"POST /v1/workloads HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Connection:
    """A kept-alive HTTP connection that sends encoded requests and reads whole answers."""

    def __init__(self, state):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(os.path.join(state, "api.sock"))
        self.rest = b""

    def exchange(self, encoded):
        """The body of the answer; raises RuntimeError on any status but 200."""
        self.socket.sendall(encoded)
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        length = int(fields[b"content-length"])
        while len(self.rest) < length:
            self._more()
        body, self.rest = self.rest[:length], self.rest[length:]
        if head.split(b" ", 2)[1] != b"200":
            raise RuntimeError(f"{head.splitlines()[0].decode()}: {body[:300].decode(errors='replace')}")
        return body

    def _more(self):
        part = self.socket.recv(1 << 18)
        if not part:
            raise RuntimeError("the controller closed the connection")
        self.rest += part


def submit(state, batches, connections):
    """Sends the encoded batches over so many connections; (seconds, jobs acknowledged)."""
    todo, lock, counts, errors = list(reversed(batches)), threading.Lock(), [], []

    def work(connection):
        acknowledged = 0
        try:
            while True:
                with lock:
                    if not todo:
                        break
                    encoded = todo.pop()
                results = connection.exchange(encoded)
                if b'"error"' in results:
                    raise RuntimeError(f"refused: {results[:300].decode(errors='replace')}")
                acknowledged += results.count(b'"id"')
        except (RuntimeError, OSError, KeyError) as error:
            errors.append(error)
        counts.append(acknowledged)

    links = [Connection(state) for _ in range(connections)]
    threads = [threading.Thread(target=work, args=(link,)) for link in links]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    if errors:
        raise RuntimeError(f"submission failed: {errors[0]}")
    return seconds, sum(counts)


def submissions(state, jobs):
    """Durable submissions: batches of 100, each answered after its sync, over 1, 4 and 8 connections."""
    environment = "\0".join(f"{k}={v}" for k, v in (("PATH", "/usr/bin:/bin"), ("HOME", "/root"), ("LANG", "C.UTF-8"))) + "\0"
    script = "#!/bin/sh\ntrue\n"
    for connections in (1, 4, 8):
        batches = [request([{"workload": workload(k), "script": script, "environment": environment}
                            for k in range(start, start + BATCH)]) for start in range(0, jobs, BATCH)]
        seconds, acknowledged = submit(state, batches, connections)
        yield "durable-submissions", {"jobs": acknowledged, "connections": connections, "batch": BATCH,
                                      "wall_s": round(seconds, 3), "jobs_per_s": round(acknowledged / seconds, 1)}


def distinct(kind, number, size):
    """A text of this size that no other number has."""
    seed = hashlib.sha256(f"{kind}{number}".encode()).hexdigest()
    return (seed * (size // len(seed) + 1))[:size]


def memory(state, jobs):
    """Memory of the controller per pending job, each with a script and an environment of its own of 4 kB."""
    pid = read_pids(state)["controller"]
    # Caches and buffers of bounded size, which are there once, are filled before: 1000 jobs, as the
    # peer's measure has 1000 running ones.
    submit(state, [request([big_submission(-1 - k) for k in range(start, start + 20)]) for start in range(0, 1000, 20)], 2)
    time.sleep(2)
    before = memory_kb(pid)
    batches = [request([big_submission(k) for k in range(start, min(start + 20, jobs))]) for start in range(0, jobs, 20)]
    seconds, acknowledged = submit(state, batches, 2)
    time.sleep(2)
    after = memory_kb(pid)
    yield "memory-per-job", {"jobs": acknowledged, "rss_kb_before": before, "rss_kb_after": after,
                             "bytes_per_job": round((after - before) * 1024 / max(acknowledged, 1)),
                             "wall_s": round(seconds, 2)}


def big_submission(number):
    script = "#!/bin/sh\n# " + distinct("script", number, 4070) + "\ntrue\n"
    environment = "PATH=/usr/bin:/bin\0BENCH=" + distinct("environment", number, 4060) + "\0"
    return {"workload": workload(number), "script": script, "environment": environment}
