# The Debian 12 packages Tutti uses, in one place: sourced by ./quickstart and ./test.
# docs/dependencies.md says what each is for.

# Without these nothing is built.
tutti_packages_build="g++ cmake ninja-build libfmt-dev libexpected-dev rapidjson-dev libsqlite3-dev
  libyaml-cpp-dev libssl-dev zlib1g-dev libboost1.81-dev libspdlog-dev libcli11-dev"
# The build works without them, slower.
tutti_packages_fast="ccache mold"
# The example and the end-to-end test of real distributed training.
tutti_packages_torch="python3 python3-torch"
# What tests use beside the program itself.
tutti_packages_tests="libgtest-dev librapidcheck-dev python3 iproute2 procps sqlite3"
# Tests of packaging; each is skipped, with the reason, where its package is missing.
tutti_packages_optional="man-db groff-base systemd zsh fish"
# Only for tools/fuzz, clang-tidy, bench/: never installed by ./test.
tutti_packages_developer="clang-14 libclang-rt-14-dev clang-format-19 clang-tidy-19 libbenchmark-dev"

# tutti_missing PACKAGE...: prints those that dpkg does not have installed.
tutti_missing() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
      printf '%s\n' "$package"
  done
}

# tutti_install PACKAGE...: as root installs what is missing. As an ordinary user says what to
# install and returns 1. On another system than Debian's kin it returns 0: the build itself will
# say what it lacks.
tutti_install() {
  command -v dpkg-query >/dev/null || return 0
  local missing
  missing=$(tutti_missing "$@")
  [ -n "$missing" ] || return 0
  missing=$(echo $missing)
  if [ "$(id -u)" != 0 ]; then
    echo "Missing Debian packages. As root:" >&2
    echo "    apt-get install --no-install-recommends $missing" >&2
    return 1
  fi
  echo "installing: $missing"
  if ! DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
      >/dev/null 2>&1; then
    # A machine whose package lists were never fetched, or are old.
    apt-get update -qq >/dev/null &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
        >/dev/null || return 1
  fi
}
