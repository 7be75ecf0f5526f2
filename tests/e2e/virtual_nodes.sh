#!/bin/bash
# Virtual nodes: names, ports, devices of their own; afterwards the machine is as before.
. "$(dirname "$0")/lib.sh"

links_before=$(ip -o link | sed -E 's/^([0-9]+: [^:]+):.*/\1/')
netns_before=$(ip netns list)
mounts_before=$(sort /proc/self/mounts)
start_cluster --nodes 2 --gpus h100:4
cd "$work"

check_equal host-names "node01 node02" "$(srun -N 2 hostname | sort | xargs)"
check_equal ranks-resolve-every-node 4 \
  "$(srun -N 2 bash -c 'getent hosts node01; getent hosts node02' | grep -cE '^(10\.|fd)')"
check_equal show-hostnames node01 "$(srun -N 2 bash -c 'scontrol show hostnames | head -1' | sort -u)"
# Each node shows the GPUs that it declares, of the number asked for.
check_equal gpus-of-a-rank "0,1" "$(srun -N 1 --gpus-per-node=2 bash -c 'echo $CUDA_VISIBLE_DEVICES')"
check shared-memory-is-there srun -N 2 bash -c 'echo x >/dev/shm/$SLURM_PROCID && rm /dev/shm/$SLURM_PROCID'

# Two jobs on different nodes bind the same port at once.
cat >listen.py <<'END'
import os, socket, time
with socket.socket() as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", 29500))
    s.listen()
    open(os.environ["MINE"], "w").close()
    end = time.monotonic() + 30
    while not os.path.exists(os.environ["OTHER"]):
        if time.monotonic() > end:
            raise SystemExit("the other one never listened")
        time.sleep(0.05)
END
MINE=$work/a OTHER=$work/b timeout 60 srun -w node01 python3 listen.py >a.out 2>&1 &
first=$!
MINE=$work/b OTHER=$work/a timeout 60 srun -w node02 python3 listen.py >b.out 2>&1
status=$?
wait $first
check_equal one-port-on-two-nodes "0 0" "$? $status"

# One rank reaches another by name.
check ranks-reach-each-other timeout 60 srun -N 2 python3 -c '
import os, socket, time
if os.environ["SLURM_PROCID"] == "0":
    with socket.socket() as s:
        s.bind(("0.0.0.0", 29500)); s.listen(); s.settimeout(30)
        link, _ = s.accept()
        assert link.recv(5) == b"hello"
else:
    end = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("node01", 29500), 5) as link:
                link.sendall(b"hello")
            break
        except OSError:
            if time.monotonic() > end: raise
            time.sleep(0.05)
'

check down stop_cluster
check_equal links-as-before "$links_before" "$(ip -o link | sed -E 's/^([0-9]+: [^:]+):.*/\1/')"
check_equal netns-as-before "$netns_before" "$(ip netns list)"
check_equal mounts-as-before "$mounts_before" "$(sort /proc/self/mounts)"
check no-process-left bash -c '! pgrep -f "$TUTTI_STATE"'
