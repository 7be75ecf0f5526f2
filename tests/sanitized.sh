#!/bin/bash
# sanitized.sh SECONDS MODULE...: builds and runs unit tests of these modules under the address and
# undefined-behaviour sanitizers. What the time does not carry is named and skipped; only a test
# that fails, or code that does not compile, fails.
set -uo pipefail
cd "$(dirname "$0")/.."
. tools/build.sh
end=$((SECONDS + $1))
shift
failed=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=1
tutti_configure asan-ubsan -DTUTTI_TESTS=ON || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for module in "$@"; do
  ls tests/unit/"$module"/*.cpp >/dev/null 2>&1 || continue
  left=$((end - SECONDS))
  [ $left -gt 5 ] || { echo "skip $module # the time is spent"; continue; }
  timeout "$left" ninja --quiet -C build/asan-ubsan "${module}_test" >"$log" 2>&1
  status=$?
  if [ $status = 0 ]; then
    left=$((end - SECONDS))
    [ $left -gt 0 ] || left=1
    TUTTI_TEST_QUICK=1 timeout "$left" "build/asan-ubsan/bin/${module}_test" >"$log" 2>&1
    status=$?
  fi
  case $status in
    0) echo "ok $module" ;;
    124) echo "skip $module # the time is spent" ;;
    *) echo "not ok $module"; tail -60 "$log"; failed=1 ;;
  esac
done
exit $failed
