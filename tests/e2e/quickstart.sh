#!/bin/bash
# ./quickstart on what is built: a cluster, the training job, its story; the second run finds all of it.
# time-limit: 600
# slow
. "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip_all "/usr/bin/python3 has no torch (package python3-torch)"
[ "$tutti_bin" = "$tutti_top/build/release/bin" ] || skip_all "quickstart runs build/release only"

export TUTTI_STATE=$work/state TUTTI_QUICKSTART_DIR=$work/run
clusters+=("$TUTTI_STATE") # torn down like one that start_cluster made
mkdir -m 755 "$TUTTI_QUICKSTART_DIR"
first=$(timeout 280 "$tutti_top/quickstart" </dev/null 2>&1)
check_equal succeeds 0 $?
check_match brings-up-four-nodes 'node\[01-04\]' "$first"
check_match shows-progress '^ +step [0-9]+ loss [0-9.]+' "$first"
check_match tells-the-roll-call 'all 2 nodes ready' "$first"
check_match tells-that-ranks-met 'ranks met: world 4' "$first"
check_match tells-the-last-loss 'last loss: +step 40 loss' "$first"
check_match tells-gpu-seconds '4 for [0-9]+ s \([1-9][0-9]* GPU-seconds\)' "$first"
check_match says-how-to-stop 'tutti down' "$first"

controller=$(pid_of controller)
second=$(timeout 280 "$tutti_top/quickstart" </dev/null 2>&1)
check_equal second-run-succeeds 0 $?
check_match second-run-finds-the-cluster 'already up' "$second"
check_equal second-run-starts-no-controller "$controller" "$(pid_of controller)"
check_match second-run-rebuilds-nothing 'built in [0-5] s' "$second"
