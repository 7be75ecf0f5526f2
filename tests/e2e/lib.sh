# Helpers of the end-to-end scripts. A script begins
#
#     #!/bin/bash
#     # What it shows.
#     # time-limit: 300          (seconds, default 600)
#     # slow                     (left out by ./test --quick)
#     . "$(dirname "$0")/lib.sh"
#     start_cluster --nodes 2
#
# and then calls `check NAME COMMAND...` for each test case. It prints the lines that tests/run.py
# reads. Whatever happens, the clusters it started are down and their files are gone afterwards.
set -uo pipefail

tutti_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tutti_bin=${TUTTI_BIN:-$tutti_top/build/release/bin}
export PATH=$tutti_bin:$PATH
# Everybody can reach this folder (jobs run as their users); the state inside has its own modes.
work=$(mktemp -d "${TMPDIR:-/tmp}/tutti-e2e.XXXXXX")
chmod 755 "$work"
failures=0
clusters=()

[ -x "$tutti_bin/tutti" ] || { echo "not ok $(basename "$0") (no $tutti_bin/tutti: build first)"; exit 1; }

ok() { echo "ok $1"; }
not_ok() {
  failures=$((failures + 1))
  [ -z "${2:-}" ] || printf "%s\n" "$2" | tail -n 60
  echo "not ok $1"
}
skip() { echo "skip $1 # $2"; }
# skip_all REASON: the whole script cannot run here.
skip_all() {
  skip "$(basename "${0%.*}")" "$1"
  exit 0
}
# check NAME COMMAND...: one test case; passes if the command exits 0. Its output shows on failure.
check() {
  local name=$1 output status
  shift
  output=$("$@" 2>&1)
  status=$?
  if [ $status = 0 ]; then ok "$name"; else not_ok "$name" "$output
$*: exit status $status"; fi
}
# check_equal NAME WANTED SEEN
check_equal() {
  if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "wanted: $2
seen:   $3"; fi
}
# check_match NAME REGEX TEXT: some line of the text matches the extended regular expression.
check_match() {
  if grep -Eq -- "$2" <<<"$3"; then ok "$1"; else not_ok "$1" "no line matches: $2
in: $3"; fi
}
# refused NAME REGEX COMMAND...: exits non-zero and says something that matches.
refused() {
  local name=$1 regex=$2 output
  shift 2
  if output=$("$@" 2>&1); then not_ok "$name" "exit status 0: $output"; return; fi
  check_match "$name" "$regex" "$output"
}
# wait_for SECONDS COMMAND...: polls until the command succeeds; fails when the time has passed.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  while ! "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.1
  done
}

# start_cluster [UP OPTIONS...]: a fresh state directory and a cluster in it; TUTTI_STATE names it.
# The script ends here if it does not come up.
start_cluster() {
  local state=$work/state.${#clusters[@]} output
  clusters+=("$state")
  export TUTTI_STATE=$state
  unset SLURM_CONF
  if ! output=$(timeout 120 tutti up --state "$state" "$@" 2>&1); then
    printf '%s\n' "$output"
    not_ok start_cluster
    exit 1
  fi
}
# stop_cluster [DIR]: down for good, its running jobs ended.
stop_cluster() {
  timeout 120 tutti down --state "${1:-$TUTTI_STATE}" --no-requeue --yes </dev/null
}
# pid_of NAME: the pid of `controller` or `agent.node01` of the current cluster.
pid_of() { awk -v name="$1" '$1 == name {print $2}' "$TUTTI_STATE/pids"; }
# submit SBATCH ARGUMENTS...: prints the job's id.
submit() { sbatch --parsable "$@" | cut -d';' -f1; }
# job_state ID: as sacct says it, the first word (COMPLETED, CANCELLED, ...).
job_state() { sacct -X -n -P -o State -j "$1" 2>/dev/null | awk 'NR == 1 {print $1}'; }
job_exit_code() { sacct -X -n -P -o ExitCode -j "$1" 2>/dev/null | head -1; }
job_is() { [ "$(job_state "$1")" = "$2" ]; }
job_ended() {
  case $(job_state "$1") in
    COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL | OUT_OF_MEMORY | PREEMPTED) return 0 ;;
  esac
  return 1
}
# wait_job ID [SECONDS]: until it ended; prints its state.
wait_job() {
  wait_for "${2:-60}" job_ended "$1"
  job_state "$1"
}

show_logs() {
  local file
  for file in "$1"/log/*; do
    [ -f "$file" ] || continue
    echo "--- ${file##*/}"
    tail -40 "$file"
  done
}
# What a cluster that does not answer leaves: by the pids it wrote down itself.
end_processes() {
  local name pid
  [ -r "$1/pids" ] || return 0
  while read -r name pid; do
    [ -r "/proc/$pid/cmdline" ] || continue
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qE "tutti( |$)" && kill -KILL "$pid" 2>/dev/null
  done <"$1/pids"
}
tear_down() {
  local status=$? state
  trap - EXIT INT TERM
  [ $status = 0 ] || [ $failures -gt 0 ] || { failures=1; echo "not ok $(basename "$0") (exit status $status)"; }
  for state in "${clusters[@]+"${clusters[@]}"}"; do
    [ $failures = 0 ] || show_logs "$state"
    [ -d "$state" ] || continue
    stop_cluster "$state" >/dev/null 2>&1 || end_processes "$state"
  done
  rm -rf "$work"
  [ $failures = 0 ] || exit 1
  exit 0
}
trap tear_down EXIT
trap 'exit 143' INT TERM
