#!/bin/bash
# Where a cluster listens, a configuration read again, machines that lack loopbacks or namespaces.
# time-limit: 240
. "$(dirname "$0")/lib.sh"
cd "$work"

# --- Programs over TCP: only when asked for, only with the token.
port=$((20000 + $$ % 20000))
start_cluster --nodes 1 --listen "$port"
ask() { python3 - "$@" <<'END'
import sys, urllib.request, urllib.error
headers = {"Authorization": "Bearer " + sys.argv[2]} if len(sys.argv) > 2 else {}
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers), timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code)
END
}
token=$(cat "$TUTTI_STATE/token")
check_equal tcp-with-the-token 200 "$(ask "http://127.0.0.1:$port/v1/state" "$token")"
check_match tcp-without-a-token '^40[13]$' "$(ask "http://127.0.0.1:$port/v1/state")"
check_match tcp-with-a-wrong-token '^40[13]$' "$(ask "http://127.0.0.1:$port/v1/state" wrong)"
remote() { env -u TUTTI_STATE HOME="$work" TUTTI_URL="http://127.0.0.1:$port" "$@"; }
check_match commands-over-tcp node01 "$(TUTTI_TOKEN=$token remote sinfo -h -N)"
check_equal srun-over-tcp node01 "$(TUTTI_TOKEN=$token remote srun hostname)"
refused commands-without-a-token "." remote sbatch --wrap true
refused a-url-that-is-none TUTTI_URL env TUTTI_URL=nonsense squeue
check down stop_cluster
start_cluster --nodes 1
sockets() { ss -Hltnp 2>/dev/null | grep -c "pid=$(pid_of controller),"; }
command -v ss >/dev/null && check_equal nothing-listens-unasked 0 "$(sockets)"
check down-again stop_cluster

# --- slurm.conf read again.
conf() {
  printf 'ClusterName=again\n'
  printf 'NodeName=%s CPUs=4 RealMemory=4000\n' "$@"
  printf 'PartitionName=p Default=YES Nodes=%s\n' "$(IFS=,; echo "$*")"
}
conf n1 n2 >slurm.conf
start_cluster --slurm-conf "$work/slurm.conf"
srun -w n2 hostname >/dev/null
job=$(submit -w n2 -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$job" RUNNING
conf n0 n1 n2 >slurm.conf
check reconfigure-adds-a-node scontrol reconfigure
check_equal the-new-node-works n0 "$(timeout 30 srun -w n0 hostname)"
check_equal nodes-find-each-other 3 "$(timeout 30 srun -w n1 bash -c 'getent ahostsv4 n0; getent ahostsv4 n1; getent ahostsv4 n2' | awk '/STREAM/ {print $1}' | sort -u | wc -l)"
check_equal job-goes-on "RUNNING n2" "$(squeue -h -j "$job" -o '%T %N')"
conf n0 n1 >slurm.conf
refused a-node-in-use-is-not-removed 'n2' scontrol reconfigure
printf 'NodeName=x CPUs=many\nNonsense\n' >slurm.conf
output=$(scontrol reconfigure 2>&1) && not_ok bad-conf-is-refused
check_match bad-conf-first-error 'slurm.conf:1:[0-9]+' "$output"
check_match bad-conf-second-error 'slurm.conf:2:[0-9]+' "$output"
check_equal the-old-one-stays 3 "$(sinfo -h -N -o %N | sort -u | wc -l)"
scancel "$job"; wait_job "$job" 20 >/dev/null
conf n0 n1 >slurm.conf
check reconfigure-removes-an-idle-node wait_for 10 scontrol reconfigure
check_equal its-agent-is-gone "agent.n0 agent.n1" "$(awk '/^agent/ {print $1}' "$TUTTI_STATE/pids" | sort | xargs)"
check down-after-it stop_cluster

# --- Only ::1.
if [ "$(id -u)" = 0 ] && unshare -n true 2>/dev/null; then
  cat >six.sh <<'END'
ip link set lo up && ip addr del 127.0.0.1/8 dev lo || exit 77
tutti up --state "$1" --nodes 2 --listen 7171 || exit 1
export TUTTI_STATE=$1
[ "$(srun -N 2 hostname | sort | xargs)" = "node01 node02" ] || exit 2
[ "$(TUTTI_URL=http://[::1]:7171 TUTTI_TOKEN=$(cat "$1/token") sinfo -h -o %D)" = 2 ] || exit 3
tutti down --no-requeue
END
  clusters+=("$work/six")
  check ipv6-only-loopback unshare -n bash six.sh "$work/six"
else
  skip ipv6-only-loopback "needs root and network namespaces"
fi

# --- Namespaces refused: one node, said loudly; more are an error.
cat >refused.sh <<'END'
for kind in user net uts mnt; do echo 0 >/proc/sys/user/max_${kind}_namespaces || exit 77; done
exec setpriv --inh-caps=-all --ambient-caps=-all --no-new-privs "$@"
END
confined() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME="$work/nobody" unshare --user --map-current-user --keep-caps bash "$work/refused.sh" "$@"; }
mkdir -p nobody; chown nobody: nobody 2>/dev/null
if [ "$(id -u)" = 0 ] && setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$tutti_bin/tutti" && confined true 2>/dev/null; then
  refused two-nodes-are-refused 'namespaces, which this machine refuses' confined tutti up --state "$work/nobody/s" --nodes 2
  check and-leave-nothing test ! -e "$work/nobody/s"
  output=$(confined timeout 60 tutti up --state "$work/nobody/s" --nodes 1 2>&1)
  check_match one-node-comes-up '^up: 1 node' "$output"
  check_match and-it-is-said 'This machine itself is the one node' "$output"
  check_equal it-runs-jobs 65534 "$(cd /tmp && TUTTI_STATE=$work/nobody/s confined timeout 30 srun id -u)"
  check its-down confined timeout 60 tutti down --state "$work/nobody/s" --no-requeue
else
  skip namespaces-refused "needs root, to confine an ordinary user"
fi
