#!/bin/bash
# Real torch.distributed over two virtual nodes: the example's script, unchanged, with four ranks in
# one world; then again, going on from a checkpoint.
# time-limit: 400
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip_all "/usr/bin/python3 has no torch (package python3-torch)"

start_cluster --nodes 2
cp "$tutti_top"/examples/train/* "$work/"
cd "$work"
export PET_REDIRECTS=1 PET_TEE=1 # torch 1.13's launcher on Python 3.11

timeout 180 sbatch --wait train.sbatch --steps 12 >submitted 2>&1
status=$?
job=$(grep -oE '[0-9]+$' submitted | head -1)
output=$(cat "train-$job.out" 2>&1)
if [ $status = 0 ]; then ok job-succeeds; else not_ok job-succeeds "exit status $status: $(cat submitted)
$output
$(tutti why "$job" 2>&1)"; fi
check_equal one-world-of-four 1 "$(grep -c 'ranks met: world 4$' <<<"$output")"
check_match loss-per-step 'step 12 loss [0-9.]+' "$output"
check checkpoint-saved test -s "checkpoint-$job.pt"
check no-part-of-a-checkpoint-left bash -c '! ls checkpoint-*.part'
losses=$(grep -oE 'loss [0-9.]+' <<<"$output" | cut -d' ' -f2)
check loss-falls awk -v a="$(head -1 <<<"$losses")" -v b="$(tail -1 <<<"$losses")" 'BEGIN {exit !(b < a)}'
story=$(tutti why "$job" 2>&1)
check_match story-has-the-roll-call 'all 2 nodes ready' "$story"
check_match story-has-gpu-seconds 'GPU-seconds held: [1-9]' "$story"

# The second job finds the first one's checkpoint under its own name.
cp "checkpoint-$job.pt" "checkpoint-$((job + 1)).pt"
timeout 180 sbatch --wait train.sbatch --steps 14 >submitted 2>&1
output=$(cat "train-$((job + 1)).out" 2>&1)
check_match resumes 'resumed at step 12' "$output"
check_match goes-on 'step 14 loss [0-9.]+' "$output"
