#!/bin/bash
# What a rank cannot do to its node, and that nothing of a job that is over survives.
# time-limit: 300
. "$(dirname "$0")/lib.sh"

start_cluster --nodes 2 --gpus h100:4 --cpus 8 --mem 4G
state=$TUTTI_STATE
# Of this cluster alone: others may run on the machine.
cluster=$(sed -E 's/.*"cluster_id":"([^"]*)".*/\1/' "$state/cluster.json")
groups_now() { find /sys/fs/cgroup -type d -name "tutti-$cluster*" 2>/dev/null | sort; }
cd "$work"
chmod 1777 "$work"
features=$(tutti doctor --json)
has_cgroups=yes
grep -q '"none: jobs are not isolated"' <<<"$features" && has_cgroups=no

check_equal host-name node02 "$(srun -w node02 hostname)"
check_equal own-shared-memory 0 "$(srun -w node01 bash -c 'echo mine >/dev/shm/x'; srun -w node02 bash -c 'ls /dev/shm | wc -l')"
srun -w node01 rm -f /dev/shm/x

# --- GPUs. A declared GPU is a device number nobody drives: opening it says ENXIO where it is
# allowed, EPERM where the device cgroup forbids it.
cat >open_gpus.py <<'END'
import errno, os, sys
def attempt(path):
    try:
        os.close(os.open(path, os.O_RDWR))
        return "open"
    except OSError as error:
        return errno.errorcode[error.errno]
mine = os.environ.get("SLURM_STEP_GPUS", "").split(",")
for index in range(4):
    path = f"/dev/nvidia{index}"
    seen = attempt(path)
    made = os.environ["MADE"] + "." + str(index)
    try:
        os.mknod(made, 0o666 | 0o020000, os.stat(path).st_rdev)
        again = attempt(made)
        os.unlink(made)
    except OSError as error:
        again = "mknod " + errno.errorcode[error.errno]
    wanted = "ENXIO" if str(index) in mine else "EPERM"
    good = seen == wanted and again in (wanted, "mknod EPERM")
    print(index, "mine" if str(index) in mine else "foreign", seen, again, "" if good else "WRONG")
END
if [ "$(id -u)" != 0 ] || [ $has_cgroups = no ]; then
  skip gpus-of-others "needs root and device cgroups"
else
  output=$(MADE=$work/gpu srun -w node01 --gpus-per-node=2 python3 open_gpus.py 2>&1)
  check_equal gpus-of-others "4 0" "$(grep -cE '^[0-3] (mine|foreign)' <<<"$output") $(grep -c WRONG <<<"$output")"
  check_equal two-are-mine 2 "$(grep -c 'mine ENXIO ENXIO' <<<"$output")"
  [ $failures = 0 ] || echo "$output"
  # CUDA_VISIBLE_DEVICES does not matter.
  output=$(MADE=$work/gpu CUDA_VISIBLE_DEVICES=0,1,2,3 srun -w node01 --gpus-per-node=1 bash -c 'CUDA_VISIBLE_DEVICES=0,1,2,3 python3 open_gpus.py')
  check_equal whatever-the-environment-says 0 "$(grep -c WRONG <<<"$output")"
fi

[ $has_cgroups = no ] || check has-groups test -n "$(groups_now)"

# --- Memory and processes.
if [ $has_cgroups = no ]; then
  skip out-of-memory "no cgroups for this user"
  skip fork-bomb "no cgroups for this user"
else
  job=$(submit --mem 64M -o "$work/oom.out" --wrap 'python3 -c "x = bytearray(400 << 20); print(len(x))"')
  check_equal out-of-memory OUT_OF_MEMORY "$(wait_job "$job" 60)"
  job=$(submit -w node02 --mem 3G -t 15 -o "$work/bomb.out" --wrap 'bomb() { bomb | bomb & }; bomb; sleep 600')
  wait_for 20 job_is "$job" RUNNING
  sleep 2  # let it grow
  check node-survives-a-fork-bomb timeout 30 srun -w node02 --mem 100M true
  check ends-a-fork-bomb timeout 60 scancel "$job"
  check_equal fork-bomb-ended CANCELLED "$(wait_job "$job" 60)"
  check node-is-free-again wait_for 30 bash -c '[ "$(sinfo -h -n node02 -o %t)" = idle ]'
fi

# --- Daemons.
cat >daemon.py <<'END'
# A daemon by the book: two forks, a session of its own, deaf to signals.
import os, signal, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
with open(sys.argv[1], "w") as f: f.write(str(os.getpid()))
for fd in range(3): os.close(fd)
time.sleep(600)
END
job=$(submit -o "$work/daemon.out" --wrap "python3 $work/daemon.py $work/daemon.pid; while [ ! -s $work/daemon.pid ]; do sleep 0.1; done")
check_equal daemon-job COMPLETED "$(wait_job "$job" 30)"
check daemon-has-started test -s "$work/daemon.pid"
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
check daemon-is-ended wait_for 15 gone "$(cat "$work/daemon.pid")"

# --- A rank that stops itself, one that ignores the end.
job=$(submit -o /dev/null --wrap 'kill -STOP $$; sleep 600')
wait_for 10 job_is "$job" RUNNING
scancel "$job"
check_equal stopped-job-can-be-cancelled CANCELLED "$(wait_job "$job" 30)"
job=$(submit -o /dev/null --wrap 'trap "" TERM INT HUP; while :; do sleep 1; done')
wait_for 10 job_is "$job" RUNNING
scancel "$job"
check_equal deaf-job-can-be-cancelled CANCELLED "$(wait_job "$job" 60)"

# --- Limits.
job=$( (ulimit -n 256; submit -o "$work/limit.out" --wrap 'ulimit -n') )
wait_job "$job" >/dev/null
check_equal limits-travel 256 "$(head -1 "$work/limit.out")"

# A node that allows less says so; the job runs with what there is.
agent=$(pid_of agent.node01)
if command -v prlimit >/dev/null && prlimit --pid "$agent" --nofile=4096:4096 2>/dev/null; then
  output=$( (ulimit -n 5000 && srun -w node01 bash -c 'ulimit -Sn') 2>&1)
  check_match limit-above-the-hard-limit-is-said 'RLIMIT_NOFILE of 5000 from submit host: the hard limit on this node is 4096' "$output"
  check_match and-the-hard-limit-is-used '^4096$' "$output"
else
  skip limit-above-the-hard-limit "prlimit is refused here"
fi

# --- Nothing is left.
nothing_of_jobs() { [ -z "$(ls -d "$state"/nodes/*/jobs/* 2>/dev/null)" ]; }
check no-files-of-jobs wait_for 15 nothing_of_jobs
check_equal no-groups-of-jobs "" "$(find /sys/fs/cgroup -type d -path "*/tutti-$cluster*/job_*" 2>/dev/null)"
check down stop_cluster
check_equal groups-as-before "" "$(groups_now)"
