#!/bin/bash
# Queues configured on a running cluster, by Tutti's file and by manifests; groups of jobs.
# time-limit: 120
. "$(dirname "$0")/lib.sh"
cd "$work"

cat >queues.yaml <<'END'
default_queue: everyone
queues:
  - name: company
    quotas: {gpu: 16}
    queues:
      - name: research
        quotas:
          gpu: {nominal: 8, borrowing_limit: 4}
        accounts: [ml]
      - name: everyone
        quotas: {gpu: 8}
END
sed 's/company/firm/; s/quotas/qoutas/' queues.yaml >typo.yaml
refused up-with-a-broken-file 'typo.yaml:4:5: error: queue "firm": unknown key "qoutas"; did you mean quotas' \
  tutti up --nodes 2 --gpus rtxpro6000:8 --state "$work/none" --queues typo.yaml
check a-refused-up-leaves-nothing test ! -e "$work/none"
start_cluster --nodes 2 --gpus rtxpro6000:8 --queues queues.yaml
check_match queues-of-up '^  everyone \*' "$(tutti queue list)"

# --- The account's queue, what it may borrow, the reason with its numbers.
first=$(sbatch --parsable -A ml -N2 --gpus=13 --wrap 'sleep 60')
sleep 0.5
check_match over-quota 'needs 13 gpu; queue research uses 0 of 8 and may borrow 4' "$(tutti why "$first")"
# A larger quota on the running cluster starts it.
tutti queue export | sed 's/borrowing_limit: 4/borrowing_limit: 5/' >more.yaml
check_match changed 'changed \(research\)' "$(tutti queue apply more.yaml)"
check_equal raised-limit-starts-it running \
  "$(for _ in $(seq 50); do squeue -h -j "$first" -t running -o running | grep . && break; sleep 0.1; done)"
check_match used 'research +gpu +13 ' "$(tutti queue list)"
scancel "$first"

# --- What is wrong is told at once, and nothing changes.
cat >wrong.yaml <<'END'
queues:
  - name: a
    parent: nobody
    quotas:
      gpu:h200: 3
      gpu: {nominal: 4, lending_limit: 9}
END
before=$(tutti queue export)
said=$(tutti queue apply wrong.yaml 2>&1)
check_match unknown-parent '^wrong.yaml:3:13: error: .*no queue nobody' "$said"
check_match unknown-type '^wrong.yaml:5:7: error: .*rtxpro6000' "$said"
check_match contradiction '^wrong.yaml:6:40: error: .*lends up to 9 and owns 4' "$said"
check_equal nothing-changed "$before" "$(tutti queue export)"

# --- Manifests add to what is there.
data=$tutti_top/tests/data/queues
check_match kueue '2 added \(shared-gpu, team-research\)' "$(tutti apply -f "$data/kueue-quota.yaml")"
printf '#!/bin/bash\n#TUTTI queue=team-research\nsleep 60\n' >job.sh
named=$(sbatch --parsable --gpus=1 job.sh)
check_match named-in-the-script 'team-research .* 1 +0$' "$(sleep 0.5; tutti queue list)"
refused queue-in-use 'cannot go: 1 job is in it' tutti queue delete team-research
scancel "$named"
refused unknown-queue 'did you mean research' env TUTTI_QUEUE=reserch sbatch --wrap true

# --- A group starts when it is complete.
export TUTTI_GROUP=pair:2
one=$(sbatch --parsable --gpus=4 --wrap 'sleep 60')
sleep 0.5
check_match group-incomplete 'group_incomplete' "$(tutti why "$one")"
two=$(sbatch --parsable --gpus=4 --wrap 'sleep 60')
unset TUTTI_GROUP
check_equal group-together 2 "$(for _ in $(seq 50); do [ "$(squeue -h -j "$one,$two" -t running | wc -l)" = 2 ] && break; sleep 0.1; done; squeue -h -j "$one,$two" -t running | wc -l)"
scancel "$one" "$two"

# --- Volcano's queues share the cluster by weight: here they are all there is.
check no-queues-again tutti queue apply - <<<'queues: []'
said=$(tutti apply -f "$data/volcano-queue-and-job.yaml" 2>&1)
check_match volcano '2 added \(root, training\)' "$said"
check_match job-left-alone 'warning: Job qwen-finetune' "$said"
check named-in-the-environment env TUTTI_QUEUE=training timeout 20 srun --gpus=1 true
