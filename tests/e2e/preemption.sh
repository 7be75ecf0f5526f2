#!/bin/bash
# Quota is taken back on a live cluster: notice, answer, release, start; the victim comes back later
# and knows why it had to go.
# time-limit: 180
. "$(dirname "$0")/lib.sh"

start_cluster --nodes 1 --gpus h100:4 --cpus 8 --mem 4G
cd "$work"
cat >queues.yaml <<'YAML'
queues:
  - name: root
    queues:
      - name: owner
        quotas: {gpu: 4}
      - name: borrower
        notice: 5s
        quotas:
          gpu: {nominal: 0, borrowing_limit: 4}
YAML
check queues-apply tutti queue apply queues.yaml

cat >borrower.sh <<'JOB'
#!/bin/bash
trap 'echo "told: $(cat "$TUTTI_NOTICE_FILE")"; exit 0' TERM
echo "life ${SLURM_RESTART_COUNT:-0}: ${TUTTI_EVICTED_FOR:-nobody}"
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || exit 0
for second in $(seq 60); do sleep 1 & wait $!; done
JOB
borrower=$(TUTTI_QUEUE=borrower submit --gpus=4 -t 10 --open-mode=append -o "$work/borrower.out" borrower.sh)
check borrower-runs wait_for 20 job_is "$borrower" RUNNING
check borrower-is-ready wait_for 20 grep -q 'life 0: nobody' "$work/borrower.out"
owner=$(TUTTI_QUEUE=owner submit --gpus=4 -t 10 -o "$work/owner.out" --wrap 'echo mine')
check_equal owner-completes COMPLETED "$(wait_job "$owner" 60)"
check_equal owner-ran mine "$(cat "$work/owner.out")"
check_equal borrower-comes-back COMPLETED "$(wait_job "$borrower" 60)"
output=$(cat "$work/borrower.out")
check_match notice-says-for-whom "^told: .*job $owner" "$output"
check_match next-life-knows-why "^life 1: job $owner takes back what its queue owns" "$output"
check_match history-says-preempted PREEMPTED "$(sacct -D -X -n -j "$borrower" -o state)"
check_match why-tells-the-story "preempted \(job $owner" "$(tutti why "$borrower" | tr -s ' \n' ' ')"
check_equal plans-were-sound 0 "$(grep -c plan_is_ "$TUTTI_STATE/log/controller.log")"
check down stop_cluster
