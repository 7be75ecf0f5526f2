#!/bin/bash
# Living with a cluster: up again, after parts died, down and up, other formats, bad configurations.
# time-limit: 300
. "$(dirname "$0")/lib.sh"

# --- up leaves nothing that holds the caller's descriptors: both would wait for ever.
state=$work/first
clusters+=("$state")
export TUTTI_STATE=$state
seen=$(timeout 60 tutti up --nodes 2 --gpus h100:4 2>&1)
check_match up-in-a-substitution '^up: 2 nodes, 8 GPUs' "$seen"
check_match second-up-says-so '^already up: 2 nodes' "$(timeout 60 tutti up --nodes 2 | cat)"
cd "$work"
pids_are_true() {
  local name pid
  [ "$(awk '{print $1}' "$state/pids" | sort | xargs)" = "agent.node01 agent.node02 controller holder.node01 holder.node02 holder.switch" ] || return 1
  while read -r name pid; do kill -0 "$pid" || return 1; done <"$state/pids"
}
check pids-file-is-true pids_are_true

# --- Parts that died are started again, nothing else; work goes on.
cat >count.sh <<'END'
#!/bin/bash
for i in $(seq 600); do echo "$i"; [ ! -e "$1" ] || exit 7; sleep 0.1; done
END
chmod +x count.sh
job=$(submit -N 2 -o "$work/count.out" --wrap "srun -l ./count.sh $work/enough")
check job-runs wait_for 20 grep -q '1: 3' count.out
dead() { [ ! -e "/proc/$1/status" ] || grep -q '^State:.Z' "/proc/$1/status"; }
controller=$(pid_of controller) agent=$(pid_of agent.node01) other=$(pid_of agent.node02)
kill -KILL "$controller"; wait_for 5 dead "$controller"
check_match up-after-the-controller-died '^up: ' "$(timeout 60 tutti up)"
check_equal agents-are-the-old-ones "$agent $other" "$(pid_of agent.node01) $(pid_of agent.node02)"
check_equal job-goes-on RUNNING "$(job_state "$job")"
controller=$(pid_of controller)
kill -KILL "$agent"; wait_for 5 dead "$agent"
check_match up-after-an-agent-died '^up: ' "$(timeout 60 tutti up)"
check_equal the-rest-is-the-old-one "$controller $other" "$(pid_of controller) $(pid_of agent.node02)"
check pids-file-is-true-again pids_are_true
touch "$work/enough"
check_equal job-ended-with-its-code FAILED "$(wait_job "$job" 30)"
check_equal exit-code 7:0 "$(job_exit_code "$job")"
# No line lost or twice, on either node.
last=$(grep -c '^0: ' count.out)
check_equal output-is-whole "$(seq -f '0: %g' "$last")" "$(grep '^0: ' count.out)"

# --- A pid of somebody else is not taken for ours.
sleep 300 & stranger=$!
sed -i "s/^controller .*/controller $stranger/" "$state/pids"
check_match a-wrong-pid-is-seen '^already up' "$(timeout 60 tutti up)"

# --- down: batch jobs are queued again, the state stays.
sleep_job=$(submit -o /dev/null --wrap 'echo started >>'"$work/starts"'; sleep 300')
check sleeps wait_for 10 job_is "$sleep_job" RUNNING
check_match down-keeps-the-state 'state is kept' "$(timeout 60 tutti down </dev/null 2>&1)"
check stranger-lives kill -0 $stranger
kill $stranger
check_equal nothing-runs "" "$(cat "$state/pids")"
refused commands-say-that-it-is-down "." squeue
check up-again timeout 60 tutti up
check requeued-job-starts-again wait_for 30 bash -c "[ \$(wc -l <'$work/starts') = 2 ]"
next=$(submit -o /dev/null --wrap true)
check_equal ids-go-on $((sleep_job + 1)) "$next"
check_equal history-is-kept FAILED "$(job_state "$job")"
check down-for-good timeout 60 tutti down --no-requeue
check up-once-more timeout 60 tutti up
check_equal not-requeued CANCELLED "$(wait_job "$sleep_job" 5)"

# --- Versions and formats.
check_match version '^tutti [0-9]+\.[0-9]+\.[0-9]+$' "$(tutti --version)"
check_equal slurm-version "slurm 22.05.8" "$(sbatch --version)"
check_match doctor-shows-sizes 'journal +[0-9]' "$(tutti doctor)"
check down timeout 60 tutti down
cp "$state/cluster.json" saved.json
sed -i 's/"format":1,/"format":99,/' "$state/cluster.json"
refused newer-format-is-refused 'format 99.*up to 1' tutti up
refused newer-format-is-refused-by-down 'format 99.*up to 1' tutti down
cp saved.json "$state/cluster.json"
bump() { # the journal's own format; prints the one before
  python3 - "$state/journal/journal.db" "$1" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute("select value from meta where key = 'format'").fetchone()[0])
db.execute("update meta set value = ? where key = 'format'", (sys.argv[2],))
db.commit()
END
}
if python3 -c 'import sqlite3' 2>/dev/null; then
  mine=$(bump 99)
  refused newer-journal-is-refused 'format 99.*up to 1' timeout 60 tutti up
  bump "$mine" >/dev/null
  [ "$(id -u)" != 0 ] || chown -R tutti: "$state/journal"
else
  skip newer-journal-is-refused "python3 has no sqlite3"
fi
check and-comes-up-with-its-own timeout 60 tutti up
check_equal still-the-same-history FAILED "$(job_state "$job")"
check purge timeout 60 tutti down --purge
check state-is-gone test ! -e "$state"

# --- What up refuses leaves nothing behind.
refused sizes-without-nodes 'give --nodes' tutti up --state "$work/none" --cpus 4
refused a-bad-gpu-count 'TYPE:' tutti up --state "$work/none" --nodes 1 --gpus many
refused a-bad-address 'ADDRESS' tutti up --state "$work/none" --nodes 1 --listen nowhere:99999
cat >bad.conf <<'END'
ClusterName=x
NodeName=a[1-2] CPUs=many
PartitionName=p Nodes=a[1-9]
Nonsense
END
output=$(tutti up --state "$work/none" --slurm-conf bad.conf 2>&1) && not_ok bad-conf-is-refused
check_match bad-conf-first-error 'bad.conf:2:[0-9]+: ' "$output"
check_match bad-conf-second-error 'bad.conf:3:[0-9]+: ' "$output"
check_match bad-conf-third-error 'bad.conf:4:[0-9]+: ' "$output"
check no-cluster-is-left bash -c "[ ! -e '$work/none/cluster.json' ]"

# --- The directory may hold other things.
mkdir "$work/mine" && echo precious >"$work/mine/file"
clusters+=("$work/mine")
check up-in-a-used-directory timeout 60 tutti up --state "$work/mine" --nodes 1
check purge-there timeout 60 tutti down --state "$work/mine" --purge
check_equal my-file-is-left precious "$(cat "$work/mine/file")"
check_equal only-my-file-is-left file "$(ls -A "$work/mine")"
