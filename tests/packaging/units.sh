#!/bin/bash
# systemd accepts the units.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=${TUTTI_BIN:-$top/build/release/bin}
command -v systemd-analyze >/dev/null || { echo "skip units # no systemd-analyze (package systemd)"; exit 0; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# verify wants the programs to exist; an instance must be named.
for unit in tutti-controller.service tutti-agent@.service; do
  sed "s#/usr/bin/tutti #$bin/tutti #" "$top/packaging/systemd/$unit" >"$folder/$unit"
done
failed=0
for unit in tutti-controller.service tutti-agent@node01.service; do
  said=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no --recursive-errors=no "$folder/$unit" 2>&1)
  status=$?
  said=$(grep -F "$folder" <<<"$said" || true)
  if [ $status = 0 ] && [ -z "$said" ]; then echo "ok $unit"; else
    echo "exit status $status: $said"
    echo "not ok $unit"
    failed=1
  fi
done
exit $failed
