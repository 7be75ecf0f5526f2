#!/bin/bash
# The small client program (docs/adr/0007) asks no name service: a static one would load libraries of
# another build, and would not be small.
top=$(cd "$(dirname "$0")/../.." && pwd)
bin=${TUTTI_BIN:-$top/build/release/bin}
if [ ! -x "$bin/tutti-client" ]; then
  echo "skip client-program # this build has none"
  exit 0
fi
asked=$(nm -C "$bin/tutti-client" | awk '{print $NF}' | grep -xE '(__)?(getpw(nam|uid)(_r)?|getgr(nam|gid)(_r)?|getgrouplist|initgroups|getaddrinfo|gethostbyname.*)' | sort -u | xargs)
if [ -z "$asked" ]; then echo "ok client-program-asks-no-name-service"; else echo "$asked"; echo "not ok client-program-asks-no-name-service"; exit 1; fi
if ! readelf -lW "$bin/tutti-client" | grep -q INTERP; then echo "ok client-program-is-static"; else echo "not ok client-program-is-static"; exit 1; fi
# Whoever builds `tutti` alone, as ./quickstart does, gets its commands and its supervisors.
built_with=$(ninja -C "${bin%/bin}" -t query bin/tutti 2>/dev/null)
if grep -q 'bin/tutti-client' <<<"$built_with"; then echo "ok client-program-is-built-with-tutti"; else echo "$built_with"; echo "not ok client-program-is-built-with-tutti"; exit 1; fi
