#!/bin/bash
# A full disk: under the journal commands are refused and running work goes on; under a job's
# output the job sees the error and the agent lives.
# time-limit: 180
. "$(dirname "$0")/lib.sh"
[ "$(id -u)" = 0 ] || skip_all "needs root: it mounts small file systems"
mkdir "$work/disk" "$work/small"
mount -t tmpfs -o size=24m,mode=755 tutti-test "$work/disk" 2>/dev/null || skip_all "mounting is refused here"
mount -t tmpfs -o size=64k,mode=1777 tutti-test "$work/small"
unmount() { umount "$work/disk" "$work/small" 2>/dev/null; }
# Before lib.sh deletes the folder.
trap 'status=$?; timeout 60 tutti down --state "$work/disk/s" --no-requeue --yes </dev/null >/dev/null 2>&1; unmount; (exit $status); tear_down' EXIT
export TUTTI_STATE=$work/disk/s
check up timeout 60 tutti up --nodes 2
cd "$work"

job=$(submit -o "$work/goes-on.out" --wrap "while [ ! -e $work/enough ]; do sleep 0.1; done; exit 5")
wait_for 10 job_is "$job" RUNNING
# All of the room goes, to the last block.
dd if=/dev/zero of="$work/disk/ballast" bs=4k >/dev/null 2>&1
head -c 200000 /dev/zero | tr '\0' 'x' >big-comment
full() { ! timeout 60 sbatch -o /dev/null --wrap "# $(head -c 100000 big-comment)
true" >refusal.out 2>&1; }
check submissions-are-refused wait_for 60 full
check_match refusal-says-why '[Ff]ull|[Nn]o space|disk' "$(cat refusal.out)"
accepted_before=$(grep -c . <<<"$(squeue -h -o %i)")
check questions-are-answered timeout 10 squeue
check_equal running-work-goes-on RUNNING "$(squeue -h -j "$job" -o %T)"
check controller-lives kill -0 "$(pid_of controller)"
rm "$work/disk/ballast"
works() { timeout 20 sbatch --parsable -o /dev/null --wrap true >accepted.out 2>/dev/null; }
check works-again-with-room wait_for 30 works
new=$(cat accepted.out)
check_equal new-job-runs COMPLETED "$(wait_job "$new" 30)"
touch "$work/enough"
check_equal running-work-ended FAILED "$(wait_job "$job" 30)"
check_equal with-its-exit-code 5:0 "$(job_exit_code "$job")"
# And all of it is there after a restart.
kill -KILL "$(pid_of controller)"
check up-again timeout 60 tutti up
check_equal state-after-restart "COMPLETED FAILED" "$(job_state "$new") $(job_state "$job")"

# --- Under a job's output.
job=$(submit -o "$work/small/job.out" --wrap 'head -c 1000000 /dev/zero || exit 9')
check_equal the-job-sees-the-error FAILED "$(wait_job "$job" 30)"
check_equal and-says-so 9:0 "$(job_exit_code "$job")"
check node-works-on timeout 30 srun -w node01 true
check down timeout 60 tutti down
