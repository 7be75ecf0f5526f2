#!/bin/bash
# Steps under a controller that dies again and again: no srun of a script fails, none runs twice.
# time-limit: 180
. "$(dirname "$0")/lib.sh"
start_cluster --nodes 2
cd "$work"
cat >many.sh <<'END'
#!/bin/bash
for i in $(seq 60); do
  srun -N 2 bash -c "echo $i.\$SLURM_PROCID >>ran.\$SLURM_PROCID" || exit 3
done
END
cat >typed.sh <<'END'
#!/bin/bash
for i in $(seq 30); do echo "line $i" | srun -n 1 cat || exit 3; done
END
chmod +x ./*.sh
job=$(submit -N 2 -o many.out many.sh)
typed=$(submit -o typed.out typed.sh)
dead() { [ ! -e "/proc/$1/status" ] || grep -q '^State:.Z' "/proc/$1/status"; }
for life in 1 2 3 4 5 6 7 8; do
  sleep 0.$((RANDOM % 3 + 1))
  controller=$(pid_of controller)
  kill -KILL "$controller"
  wait_for 5 dead "$controller"  # until then `up` sees it alive
  timeout 60 tutti up >/dev/null 2>&1 || not_ok "up-again-$life"
done
check_equal every-step-succeeds COMPLETED "$(wait_job "$job" 60)"
check_equal every-rank-ran-once "$(seq -f '%g.0' 60) $(seq -f '%g.1' 60)" "$(cat ran.0) $(cat ran.1)"
check_equal input-arrives-whole "COMPLETED $(seq -f 'line %g' 30)" "$(wait_job "$typed" 60) $(grep -v '^srun:' typed.out)"
check down stop_cluster
