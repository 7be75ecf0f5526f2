#!/bin/bash
# What people type and read: run, logs, why, top, questions on a terminal, zones, texts of the world.
# time-limit: 240
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
terminal() { python3 "$here/terminal.py" "$@"; }
start_cluster --nodes 2 --gpus h100:4 --cpus 16
cd "$work"

# --- tutti run: GPUs, output, exit codes, inside and outside a terminal.
check_equal run-gets-its-gpus 2 "$(tutti run --gpus 2 -- python3 -c 'import os; print(len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")))' 2>/dev/null)"
tutti run -- bash -c 'exit 3' >/dev/null 2>&1
check_equal run-exit-code 3 $?
tutti run -- bash -c 'kill -9 $$' >/dev/null 2>&1
check_equal run-killed-by-a-signal 137 $?
tutti run -- /nowhere/program >/dev/null 2>&1
check_equal run-without-a-program 2 $?
check_equal run-reads-its-input "HELLO" "$(echo hello | tutti run -- tr a-z A-Z 2>/dev/null)"
output=$(terminal 30 "" "" -- tutti run -- bash -c 'test -t 0 && test -t 1 && echo on a terminal; exit 4')
check_equal run-on-a-terminal-exit-code 4 $?
check_match run-on-a-terminal 'on a terminal' "$output"
output=$(terminal 30 "ready" '\x02d' -- tutti run --name detached -- bash -c "echo ready; while [ ! -e $work/enough ]; do sleep 0.1; done; echo after; exit 6")
check_match detaching-says-so '[Dd]etached' "$output"
job=$(squeue -h -n detached -o %i)
check_equal detached-job-goes-on RUNNING "$(job_state "$job")"
touch enough
check_equal detached-job-ended FAILED "$(wait_job "$job" 20)"
check_equal detached-exit-code 6:0 "$(job_exit_code "$job")"

# --- logs -f until the end.
job=$(submit -o "$work/log-%j.out" --wrap 'for i in 1 2 3 4 5; do echo line $i; sleep 0.2; done')
check_equal logs-follow "line 1 line 2 line 3 line 4 line 5" "$(timeout 30 tutti logs -f "$job" | xargs)"

# --- why and top: true, and at most 80 columns.
narrow() { awk 'length($0) > 80 {print "too wide: " $0; bad = 1} END {exit bad}' <<<"$1"; }
running=$(submit -J train -N 2 --gpus-per-node=3 -t 10 -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$running" RUNNING
waiting=$(submit -J waits --gpus-per-node=4 -t 5 -o /dev/null --wrap true)
behind=$(submit -J behind --dependency "afterok:$running" -o /dev/null --wrap true)
held=$(submit -J held --hold -o /dev/null --wrap true)
failed=$(submit -J fails -o /dev/null --wrap 'exit 9')
wait_job "$failed" 20 >/dev/null
wait_for 10 bash -c "squeue -h -j $waiting -o %r | grep -qE 'Resources|Priority'"
for name in running waiting behind held failed; do
  output=$(COLUMNS=80 tutti why "${!name}")
  check "why-$name-fits" narrow "$output"
  declare "why_$name=$output"
done
check_match why-running-names-its-gpus '3 GPUs|6 GPUs' "$why_running"
check_match why-waiting-names-what-it-lacks '4' "$why_waiting"
check_match why-waiting-names-who-holds-it "$running" "$why_waiting"
check_match why-behind-names-its-job "$running" "$why_behind"
check_match why-held '[Hh]eld' "$why_held"
check_match why-failed-names-the-code '9' "$why_failed"
top=$(COLUMNS=80 tutti top --once)
check top-fits narrow "$top"
check_equal top-shows-three-gpus-on-each 2 "$(grep -cE 'node0[12].*(aaa\.|AAA\.)' <<<"$top")"
scancel "$running" "$waiting" "$behind" "$held"

# --- Texts of the world, byte for byte, whatever the locale.
text='grüße-日本語-🎼'
cat >world.sh <<END
#!/bin/bash
#SBATCH --comment="$text"
echo '$text' # $text
END
job=$(LANG=C LC_ALL=C submit -J "$text" -o "$work/world.out" world.sh)
wait_job "$job" 20 >/dev/null
check_equal world-in-the-output "$text" "$(cat world.out)"
check_equal world-in-the-name "$text" "$(LANG=C LC_ALL=C sacct -X -n -P -o JobName -j "$job")"
check_equal world-in-the-script "$(cat world.sh)" "$(LC_ALL=C scontrol write batch_script "$job" -)"
job=$(LC_ALL=C submit --hold --comment "$text" -o /dev/null world.sh)
check_match world-in-the-comment "Comment=$text" "$(LC_ALL=C scontrol show job "$job")"
scancel "$job"

# --- Times in the caller's zone.
job=$(TZ=UTC submit --begin 2030-07-01T12:00:00 -o /dev/null --wrap true)
check_equal begin-in-utc 2030-07-01T12:00:00 "$(TZ=UTC squeue -h -j "$job" -o %S)"
check_equal begin-in-berlin 2030-07-01T14:00:00 "$(TZ=Europe/Berlin squeue -h -j "$job" -o %S)"
job2=$(TZ=Europe/Berlin submit --begin 2030-01-01T12:00:00 -o /dev/null --wrap true)
check_equal begin-given-in-berlin-in-winter 2030-01-01T11:00:00 "$(TZ=UTC squeue -h -j "$job2" -o %S)"
scancel "$job" "$job2"

# --- down asks on a terminal if jobs run.
job=$(submit -o /dev/null --wrap 'sleep 300')
wait_for 10 job_is "$job" RUNNING
output=$(terminal 30 "y/N" 'n\n' -- tutti down)
check_equal no-means-no 1 $?
check_match down-asks 'running. End .* and stop the cluster' "$output"
check_equal and-the-job-goes-on RUNNING "$(job_state "$job")"
output=$(terminal 60 "y/N" 'y\n' -- tutti down)
check_equal yes-means-yes 0 $?
check_equal down-is-down "" "$(cat "$TUTTI_STATE/pids")"
