#!/bin/bash
# The virtual nodes of an ordinary user: the same checks in one user namespace. As root this script
# takes an unused user's identity; as an ordinary user virtual_nodes.sh has shown it already.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" = 0 ] || { echo "skip ordinary-user # this whole run is one"; exit 0; }
uid=64321
home=$(mktemp -d "${TMPDIR:-/tmp}/tutti-user.XXXXXX")
trap 'rm -rf "$home"' EXIT
chown $uid:$uid "$home"
as_user=(setpriv --reuid=$uid --regid=$uid --clear-groups env -u XDG_STATE_HOME -u XDG_RUNTIME_DIR HOME="$home" TMPDIR="$home")
"${as_user[@]}" test -x "$here/virtual_nodes.sh" || { echo "skip ordinary-user # other users cannot read this tree"; exit 0; }
"${as_user[@]}" unshare --user --map-root-user --net true 2>/dev/null ||
  { echo "skip ordinary-user # this machine refuses user namespaces"; exit 0; }
"${as_user[@]}" "$here/virtual_nodes.sh"
