#!/bin/bash
# Reservations, promises and what-if as people use them, on nodes that are planned only.
# time-limit: 120
. "$(dirname "$0")/lib.sh"
start_cluster --planned 3
cd "$work" || exit 1
printf '#!/bin/bash\nsleep 60\n' >job.sh
me=$(id -un)

check_match none-yet '^No reservations in the system$' "$(scontrol show reservation)"
check_match created '^Reservation created: night$' \
  "$(scontrol create reservation=night starttime=now+1hour duration=60 nodes='big[0001-0002]' users=root flags=maint,magnetic 2>/dev/null)"
check_match what-has-no-effect-is-said 'Flags=MAGNETIC has no effect' \
  "$(scontrol create reservation=class starttime=now duration=120 nodes=big0003 users="$me" flags=magnetic 2>&1)"
check_match shown 'Nodes=big\[0001-0002\] NodeCnt=2 .*Flags=MAINT,SPEC_NODES' "$(scontrol show reservation night)"
check_match listed '^class +ACTIVE .* big0003$' "$(sinfo -T)"
check_match reserved-node ' resv big0003$' "$(sinfo -p big)"
refused a-name-is-taken 'Duplicate reservation name' scontrol create reservation=night starttime=now duration=5 nodes=big0001 users=root
refused an-unknown-node 'Invalid node name specified' scontrol create reservation starttime=now duration=5 nodes=nosuch users=root
refused an-overlap 'overlaps with another reservation' scontrol create reservation starttime=now duration=5 nodes=big0003 users=root

refused an-unknown-reservation 'Requested reservation is invalid' sbatch -p big --reservation=nosuch job.sh
inside=$(submit -p big --reservation=class -t 30 -o /dev/null job.sh)
check runs-in-its-reservation wait_for 10 job_is "$inside" RUNNING
check_equal on-its-node big0003 "$(squeue -h -j "$inside" -o %N)"
refused in-use 'reservation is in use' scontrol delete reservation=class

long=$(submit -p big -t 180 --gres=gpu:8 -o /dev/null job.sh)
check_match waits-for-the-window 'ReqNodeNotAvail, Reserved for maintenance' "$(squeue -h -j "$long" -o %R)"
why=$(COLUMNS=500 tutti why "$long")
check_match why-names-the-window 'reservation night begins in' "$why"
change=$(sed -n 's/.*with a time limit of \([0-9]*\) min it starts at once.*/\1/p' <<<"$why")
check_match why-has-a-change-that-helps '^[0-9]+$' "$change"
check_match squeue-start "^ *$long .*20[0-9][0-9]-" "$(squeue --start -h)"
check_match whatif-submit '\(new\) .* now ' "$(tutti whatif submit job.sh)"
check_match whatif-more-nodes "^$long .* now +new1\$" "$(tutti whatif add-nodes 1:like=big0001)"
check_match whatif-as-data '"unchanged"' "$(tutti whatif drain big0001 --json)"
refused whatif-unknown-node 'node nosuch is not configured' tutti whatif drain nosuch
check the-change-is-accepted scontrol update jobid="$long" timelimit="$change"
check and-it-starts wait_for 10 job_is "$long" RUNNING
check night-goes scontrol delete reservation=night
