#!/bin/bash
# Users' own files, unchanged: the slurm.conf and scripts of TUTTI_SHARED/examples on the cluster
# they describe, and train-llm.sbatch with 64 ranks on one of ours. What each rank is told and holds
# is compared with what the script asked for.
# time-limit: 400
. "$(dirname "$0")/lib.sh"
theirs=
for base in "${TUTTI_SHARED:-}" "$tutti_top/shared" "$tutti_top/../shared"; do
  [ -z "$base" ] || [ ! -f "$base/examples/slurm.conf" ] || { theirs=$base/examples; break; }
done
[ -n "$theirs" ] || skip_all "no examples/slurm.conf: TUTTI_SHARED names the folder that holds examples/"
cp "$theirs"/*.sbatch "$work"
cp -r "$tutti_top/examples" "$work/ours"
cd "$work"
mkdir bin logs records configs rdzv
chmod 1777 . logs records rdzv
export RECORDS=$work/records

# --- What stands for training: each notes what it was told. `python -m torch.distributed.run` keeps
# to the launcher's contract: two nodes make a world, a third launcher finds the rendezvous closed.
cat >bin/note.py <<'END'
# note.py NAME: what this process was told and can see, as JSON in $RECORDS.
import json, os, socket, subprocess, sys
def resolves(name):
    try:
        return socket.getaddrinfo(name, 29500)[0][4][0]
    except OSError as error:
        return "error: " + str(error)
keep = {k: v for k, v in os.environ.items() if k.startswith(("SLURM", "CUDA_", "MASTER_"))}
nodes = subprocess.run(["scontrol", "show", "hostnames", os.environ["SLURM_JOB_NODELIST"]],
                       capture_output=True, text=True, check=True).stdout.split()
note = {"host": socket.gethostname(), "argv": sys.argv[2:], "env": keep, "cpus": sorted(os.sched_getaffinity(0)),
        "resolves": {n: resolves(n) for n in nodes}, "gpus": sorted(f for f in os.listdir("/dev") if f.startswith("nvidia"))}
with open(os.path.join(os.environ["RECORDS"], sys.argv[1] + ".json"), "w") as f:
    json.dump(note, f)
END
cat >bin/python <<'END'
#!/bin/bash
# Two launchers, on different nodes, are the world; all others come too late.
/usr/bin/python3 "$(dirname "$0")/note.py" "$SLURM_JOB_ID.$SLURM_PROCID" "$@"
[ "$1 $2" = "-m torch.distributed.run" ] || exit 9
while [ ! -e "$RECORDS/go" ]; do sleep 0.1; done
mkdir "$RECORDS/../rdzv/$SLURM_JOB_ID.$SLURM_NODEID" 2>/dev/null && exit 0
echo "RendezvousClosedError" >&2
exit 13
END
cat >bin/torchrun <<'END'
#!/bin/bash
# One on each node; its eight ranks are told what torchrun tells them.
for local in 0 1 2 3 4 5 6 7; do
  LOCAL_RANK=$local RANK=$((SLURM_NODEID * 8 + local)) WORLD_SIZE=$((SLURM_NNODES * 8)) \
    /usr/bin/python3 "$(dirname "$0")/note.py" "$SLURM_JOB_ID.rank$((SLURM_NODEID * 8 + local))" "$@" &
  ranks+=($!)
done
for pid in "${ranks[@]}"; do wait "$pid" || exit 1; done
END
chmod 755 bin bin/*
path_before=$PATH
export PATH=$work/bin:$PATH

# same NAME FILES... -- PYTHON: over the notes `n` in rank order, the expression is True.
same() {
  local name=$1 output
  shift
  if output=$(/usr/bin/python3 - "$@" <<'END'
import glob, json, re, sys
split = sys.argv.index("--")
paths = [p for pattern in sys.argv[1:split] for p in glob.glob(pattern)]
n = [json.load(open(p)) for p in sorted(paths, key=lambda p: int(re.search(r"(\d+)\.json$", p)[1]))]
good = eval(sys.argv[split + 1])
if good is not True:
    print(good, "in", json.dumps(n, indent=1)[:6000])
    sys.exit(1)
END
  ); then ok "$name"; else not_ok "$name" "$output"; fi
}

# ================ The four-node cluster of slurm.conf ================
start_cluster --slurm-conf "$theirs/slurm.conf"
check_equal nodes-of-the-conf "interactive|node04|idle train*|node[01-03]|idle" "$(sinfo -h -o '%P|%N|%t' | sort | xargs)"
check_equal sizes-of-the-conf "128 1024000 gpu:rtxpro6000:8" "$(sinfo -h -p train -o '%c %m %G')"

# lint says before what then happens.
output=$(tutti lint qwen-finetune.sbatch)
check_match lint-counts-the-launchers '16' "$output"
check_match lint-warns-of-the-output 'logs' "$(cd / && tutti lint "$work/qwen-finetune.sbatch")"

# --- qwen-finetune.sbatch, not a byte changed.
output=$(sbatch qwen-finetune.sbatch 2>&1)
check_match qwen-is-accepted '^Submitted batch job [0-9]+$' "$output"
job=${output##* }
check qwen-all-launchers wait_for 60 bash -c "[ \$(ls records/$job.*.json | wc -l) = 16 ]"
shown=$(scontrol show job -d "$job")
check_match qwen-shape 'NumNodes=2 NumCPUs=16 NumTasks=16 CPUs/Task=1 ' "$shown"
# No memory was asked for and the configuration has no default for it.
check_match qwen-tres '^ +TRES=cpu=16,node=2,billing=16,gres/gpu=16,gres/gpu:rtxpro6000=16$' "$shown"
check_match qwen-gpus-on-each 'GRES=gpu:rtxpro6000:8\(IDX:0-7\)' "$shown"
check_match qwen-nodes '^ +NodeList=node\[01-02\]$' "$shown"
check_match qwen-limit 'TimeLimit=12:00:00 ' "$shown"
check_match qwen-tres-asked 'TresPerNode=gres:gpu:rtxpro6000:8' "$shown"
check_equal qwen-cpus-of-a-node "8 8" "$(scontrol show node 'node[01-02]' | grep -oE 'CPUAlloc=[0-9]+' | cut -d= -f2 | xargs)"
check_equal qwen-others-hold-nothing "0 0" "$(scontrol show node 'node[03-04]' | grep -oE 'CPUAlloc=[0-9]+' | cut -d= -f2 | xargs)"
notes="records/$job.*.json"
same qwen-sixteen-launchers $notes -- 'len(n) == 16'
same qwen-ranks $notes -- '[x["env"]["SLURM_PROCID"] for x in n] == [str(i) for i in range(16)]'
same qwen-first-host-is-the-endpoint $notes -- 'all("--rdzv-endpoint=node01:29500" in x["argv"] for x in n)'
same qwen-arguments $notes -- 'all(x["argv"] == ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=8", "--rdzv-backend=c10d", "--rdzv-endpoint=node01:29500", "train.py", "--config", "configs/qwen72b.yaml"] for x in n)'
same qwen-visible-gpus $notes -- 'all(x["env"]["CUDA_VISIBLE_DEVICES"] == "0,1,2,3,4,5,6,7" for x in n)'
touch records/go
check_equal qwen-ends-failed FAILED "$(wait_job "$job" 60)"
check_equal qwen-has-sruns-exit-code 13:0 "$(job_exit_code "$job")"
check_equal qwen-in-sacct "16|2|billing=16,cpu=16,gres/gpu:rtxpro6000=16,gres/gpu=16,node=2" \
  "$(sacct -X -n -P -o AllocCPUS,NNodes,AllocTRES -j "$job")"

# --- The corrected script: one launcher on each node.
check lint-of-the-correction tutti lint ours/slurm/qwen-finetune-fixed.sbatch
job=$(submit ours/slurm/qwen-finetune-fixed.sbatch)
check_equal fixed-completes COMPLETED "$(wait_job "$job" 60)"
same fixed-one-launcher-a-node "records/$job.*.json" -- '[x["host"] for x in n] == ["node01", "node02"]'

# --- train-llm.sbatch asks for a partition that is not there.
refused llm-is-refused '^sbatch: error: .*Invalid partition name specified$' sbatch train-llm.sbatch
check_match llm-lint-says-so 'has no partition gpu' "$(tutti lint train-llm.sbatch 2>&1)"

# --- The corrected script with real torch: sixteen real ranks in one world.
if [ "$(nproc)" -lt 8 ]; then
  skip real-torch "sixteen real ranks take minutes on fewer than 8 CPUs; train-two-nodes runs four"
elif /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  mkdir real && chmod 1777 real
  cp ours/train/* ours/slurm/qwen-finetune-fixed.sbatch real/
  mkdir real/configs real/bin
  printf 'steps: 3\nhidden: 8\nbatch: 2\n' >real/configs/qwen72b.yaml
  printf '#!/bin/sh\nexec /usr/bin/python3 "$@"\n' >real/bin/python
  if ! /usr/bin/python3 -m torch.distributed.run --help | grep -q -- --nproc-per-node; then
    skip real-torch-with-the-script-as-it-is "this torch knows options with underscores only: --nproc_per_node"
    sed -i 's/--nproc-per-node/--nproc_per_node/; s/--rdzv-backend/--rdzv_backend/; s/--rdzv-endpoint/--rdzv_endpoint/' real/*.sbatch
  fi
  chmod 755 real/bin real/bin/python
  (cd real && PATH=$work/real/bin:$path_before PET_REDIRECTS=1 PET_TEE=1 OMP_NUM_THREADS=1 timeout 200 \
    sbatch --wait qwen-finetune-fixed.sbatch >submitted 2>&1)
  job=$(grep -oE '[0-9]+$' real/submitted)
  output=$(cat "real/qwen-finetune-$job.out")
  check_equal real-torch-completes COMPLETED "$(job_state "$job")"
  check_match real-torch-one-world 'ranks met: world 16$' "$output"
  check_match real-torch-trains 'step 3 loss [0-9.]+' "$output"
  [ $failures = 0 ] || tail -n 30 <<<"$output"
else
  skip real-torch "/usr/bin/python3 has no torch (package python3-torch)"
fi
check down stop_cluster

# ================ A cluster of ours: eight nodes, partition gpu ================
mkdir eight
echo 'NodeName=node[01-08] Name=gpu Type=rtxpro6000 File=/dev/nvidia[0-7]' >eight/gres.conf
cat >eight/slurm.conf <<'END'
ClusterName=eight
GresTypes=gpu
NodeName=node[01-08] CPUs=128 RealMemory=1000000 Gres=gpu:rtxpro6000:8
PartitionName=batch Default=YES Nodes=ALL
PartitionName=gpu Nodes=ALL MaxTime=INFINITE
END
start_cluster --slurm-conf "$work/eight/slurm.conf"
check llm-lint-is-content-here tutti lint train-llm.sbatch
output=$(timeout 120 sbatch --wait train-llm.sbatch 2>&1)
check_equal llm-succeeds 0 $?
job=$(grep -oE '[0-9]+$' <<<"$output" | head -1)
check_equal llm-completes COMPLETED "$(job_state "$job")"
check_equal llm-allocation "8 8 node[01-08] gpu" "$(sacct -X -n -P -o AllocCPUS,NNodes,NodeList,Partition -j "$job" | tr '|' ' ')"
check_match llm-gpus 'gres/gpu=64' "$(sacct -X -n -P -o AllocTRES -j "$job")"
notes="records/$job.rank*.json"
same llm-ranks $notes -- 'len(n) == 64'
same llm-eight-on-each-node $notes -- '[x["host"] for x in n] == ["node%02d" % (1 + i // 8) for i in range(64)]'
same llm-arguments $notes -- "all(x['argv'] == ['--nnodes=8', '--nproc_per_node=8', '--rdzv_backend=c10d', '--rdzv_endpoint=node01:29500', '--rdzv_id=$job', 'train.py'] for x in n)"
same llm-master $notes -- 'all((x["env"]["MASTER_ADDR"], x["env"]["MASTER_PORT"]) == ("node01", "29500") for x in n)'
same llm-names-resolve $notes -- 'all(len(set(x["resolves"].values())) == 8 and not any(v.startswith("error") for v in x["resolves"].values()) for x in n)'
same llm-names-are-the-same-everywhere $notes -- 'all(x["resolves"] == n[0]["resolves"] for x in n)'
same llm-devices $notes -- 'all({"nvidia%d" % g for g in range(8)} <= set(x["gpus"]) for x in n)'
same llm-variables $notes -- "all({k: x['env'].get(k) for k in want} == want for i, x in enumerate(n) for want in [{
  'CUDA_VISIBLE_DEVICES': '0,1,2,3,4,5,6,7', 'SLURMD_NODENAME': 'node%02d' % (1 + i // 8), 'SLURM_CLUSTER_NAME': 'eight',
  'SLURM_CPUS_ON_NODE': '1', 'SLURM_GPUS_ON_NODE': '8', 'SLURM_GPUS_PER_NODE': '8', 'SLURM_GTIDS': str(i // 8),
  'SLURM_JOBID': '$job', 'SLURM_JOB_CPUS_PER_NODE': '1(x8)', 'SLURM_JOB_ID': '$job', 'SLURM_JOB_NAME': 'train-llm',
  'SLURM_JOB_NODELIST': 'node[01-08]', 'SLURM_JOB_NUM_NODES': '8', 'SLURM_JOB_PARTITION': 'gpu', 'SLURM_JOB_UID': '$(id -u)',
  'SLURM_LOCALID': '0', 'SLURM_NNODES': '8', 'SLURM_NODEID': str(i // 8), 'SLURM_NODELIST': 'node[01-08]', 'SLURM_NPROCS': '8',
  'SLURM_NTASKS': '8', 'SLURM_NTASKS_PER_NODE': '1', 'SLURM_PROCID': str(i // 8), 'SLURM_STEPID': '0', 'SLURM_STEP_GPUS': '0,1,2,3,4,5,6,7',
  'SLURM_STEP_ID': '0', 'SLURM_STEP_NODELIST': 'node[01-08]', 'SLURM_STEP_NUM_NODES': '8', 'SLURM_STEP_NUM_TASKS': '8',
  'SLURM_STEP_TASKS_PER_NODE': '1(x8)', 'SLURM_SUBMIT_DIR': '$work', 'SLURM_TASKS_PER_NODE': '1(x8)'}])"
check down-again stop_cluster
