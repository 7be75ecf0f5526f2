# Building, as ./quickstart, ./test and tools/fuzz do it. Sourced, from the top of the tree.

# Precompiled headers defeat ccache unless it is told that macros and times of files do not matter.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}
export CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# tutti_configure PRESET [-DNAME=VALUE...]: configures build/PRESET unless it has these values.
tutti_configure() {
  local preset=$1 cache=build/$1/CMakeCache.txt want stale=0
  shift
  [ -e "build/$preset/build.ninja" ] || stale=1
  for want in "$@"; do
    # -DNAME=VALUE is NAME:TYPE=VALUE in the cache.
    local name=${want#-D}
    grep -q "^${name%%=*}:[A-Z]*=${name#*=}\$" "$cache" 2>/dev/null || stale=1
  done
  [ $stale = 1 ] || return 0
  local log
  log=$(mktemp)
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# tutti_ninja PRESET [TARGET...]: builds; on a terminal with ninja's own progress, else quietly.
tutti_ninja() {
  local preset=$1
  shift
  # A compiler of this code takes up to 1.2 GB.
  local jobs memory_jobs
  jobs=$(nproc)
  memory_jobs=$(awk '/MemAvailable/ {print int($2 / 1200000)}' /proc/meminfo)
  [ "$memory_jobs" -ge 1 ] || memory_jobs=1
  [ "$jobs" -le "$memory_jobs" ] || jobs=$memory_jobs
  if [ -t 1 ]; then
    ninja -C "build/$preset" -j "$jobs" "$@"
  else
    ninja --quiet -C "build/$preset" -j "$jobs" "$@"
  fi
}
