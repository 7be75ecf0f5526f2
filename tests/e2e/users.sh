#!/bin/bash
# A cluster started by root serves all users of the machine, each with his own work only: who may
# see, end and read what; what a rank can reach of the cluster's keys and files.
# time-limit: 180
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root: it starts jobs of several users"

alice() { setpriv --reuid=games --regid=games --clear-groups env HOME=/tmp USER=games SECRET_OF_ALICE=xyzzy "$@"; }
bob() { setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=/tmp USER=nobody "$@"; }
alice test -x "$tutti_bin/tutti" || skip_all "other users cannot read this tree"

start_cluster --nodes 2
state=$TUTTI_STATE
mkdir "$work/out" && chmod 1777 "$work/out" && cd "$work/out"

check_equal controller-runs-as-tutti tutti "$(stat -c %U "/proc/$(pid_of controller)")"
check_equal local-users-may-use-it "5:games" "$(alice srun bash -c 'echo $(id -u):$(id -un)')"

job=$(alice sbatch --parsable --job-name secret-name -o "$work/out/alice.out" --wrap '# wordofthescript
sleep 60')
check alice-runs wait_for 10 job_is "$job" RUNNING
refused bob-cannot-cancel "[Aa]ccess/permission denied" bob scancel "$job"
refused bob-cannot-hold "[Ii]nvalid user id|denied" bob scontrol hold "$job"
refused bob-cannot-requeue "[Ii]nvalid user id|denied" bob scontrol requeue "$job"
refused bob-cannot-change "[Ii]nvalid user id|denied" bob scontrol update "jobid=$job" timelimit=1
refused bob-cannot-read-the-script "denied" bob scontrol write batch_script "$job" -
refused bob-cannot-start-a-step "not your job|denied|Invalid|permission" bob timeout 10 env SLURM_JOB_ID="$job" srun --overlap true
refused bob-cannot-drain "denied|Invalid user" bob scontrol update nodename=node01 state=drain reason=x
refused bob-cannot-stop-the-cluster "." bob tutti down --yes
check alice-still-runs job_is "$job" RUNNING
# Whom /etc/passwd does not have is served by the whole program instead of the small one.
nameless() { setpriv --reuid=54321 --regid=54321 --clear-groups env HOME=/tmp "$@"; }
check_match a-user-without-a-name-submits '^Submitted batch job' "$(nameless sbatch -o /dev/null --wrap true 2>&1)"
check_equal both-programs-say-the-same "$(tutti squeue -a -t R -o '%i %u %g %t %R')" "$(squeue -a -t R -o '%i %u %g %t %R')"
check_equal a-job-has-the-groups-of-its-user "$(id -G root | tr ' ' '\n' | sort -n | xargs)" "$(srun id -G | tr ' ' '\n' | sort -n | xargs)"
check_match alice-reads-her-script wordofthescript "$(alice scontrol write batch_script "$job" -)"

# Nobody else finds script, environment, keys in any file of the cluster.
cat >look.py <<'END'
# Every file below DIR that this user can open, and what it gives away.
import os, sys
bad = []
for root, folders, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(root, name)
        try:
            with open(path, "rb") as f:
                text = f.read()
        except OSError:
            continue
        if os.path.basename(path) in ("token", "agent.key"):
            bad.append(path)
        for word in (b"xyzzy", b"wordofthescript"):
            if word in text:
                bad.append(path + ": " + word.decode())
print("\n".join(bad))
sys.exit(bool(bad))
END
# The path of a job's folder can be guessed, though not listed.
cat >guess.sh <<END
for node in node01 node02; do
  for file in "" /gang.json /step_batch /step_batch/slurm_script /step_batch/status.json /step_batch/output /step_batch/notify; do
    path=$state/nodes/\$node/jobs/$job\$file
    if [ -d "\$path" ]; then ls "\$path" 2>/dev/null && echo "\$path can be listed"; fi
    if [ -f "\$path" ] && cat "\$path" >/dev/null 2>&1; then echo "\$path can be read"; fi
  done
done
exit 0
END
check bob-reads-no-secret bob python3 look.py "$state"
check_equal bob-guesses-no-path "" "$(bob bash guess.sh)"
check a-rank-of-bob-reads-no-secret bob srun -w node01 python3 look.py "$state"
check_equal a-rank-of-bob-guesses-no-path "" "$(bob srun -w node01 bash guess.sh)"
for path in journal agent.key token; do
  mode=$(stat -c %a "$state/$path")
  check_match "mode-of-$path" '^[67]00$' "$mode"
done
check_equal journal-files-are-private "" "$(find "$state/journal" -type f ! -perm 600)"

# TCP asks for a token or a key; a rank has neither.
cat >ask.py <<'END'
import sys, urllib.request, urllib.error
def ask(path, token=None, body=None):
    headers = {"Authorization": "Bearer " + token} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request("http://10.77.0.1:7770" + path, body, headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
wanted = [("/v1/state", None), ("/v1/state", "guess"), ("/v1/history", None), ("/v1/diag", None)]
seen = [ask(*w) for w in wanted] + [ask("/v1/workloads", None, b'{"submissions":[]}'), ask("/v1/shutdown", None, b"{}"),
                                    ask("/v1/actions", None, b'{"verb":"cancel"}')]
print(seen)
sys.exit(any(code not in (401, 403) for code in seen))
END
check tcp-without-a-token-is-refused bob srun -w node01 python3 ask.py
cat >dial.py <<'END'
import base64, os, socket, sys
for path in ("/v1/agent", "/v1/attach?gang=1"):
    with socket.create_connection(("10.77.0.1", 7770), 10) as s:
        s.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: %s\r\n\r\n" % (path, base64.b64encode(os.urandom(16)).decode())).encode())
        line = s.recv(100).split(b"\r\n")[0].decode()
        print(path, line)
        if " 403" not in line and " 401" not in line: sys.exit(1)
END
check no-agent-without-the-key bob srun -w node01 python3 dial.py
check agents-still-there bash -c '[ "$(sinfo -h -o %D -t idle,mix,alloc | xargs)" != "" ] && srun -N 2 true'

# The environment of the submit host reaches the job, whole.
check_equal environment-reaches-the-job xyzzy "$(alice srun bash -c 'echo $SECRET_OF_ALICE')"
check alice-may-cancel alice scancel "$job"
check_equal cancelled CANCELLED "$(wait_job "$job" 30)"
wait_for 10 bash -c "! ls -d $state/nodes/*/jobs/* 2>/dev/null"
check_equal nothing-left-of-the-jobs "" "$(ls -d "$state"/nodes/*/jobs/* 2>/dev/null)"
