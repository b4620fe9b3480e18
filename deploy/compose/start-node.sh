#!/bin/sh
# Start a node in a container: prepare cgroups, then replace this shell with the node, so that it receives signals.
set -eu
cgroup=/sys/fs/cgroup
# In version 2 only a cgroup without processes can delegate controllers, and a container's processes start in its top one.
if [ -f "$cgroup/cgroup.controllers" ]; then
  mkdir -p "$cgroup/init"
  xargs -rn1 <"$cgroup/cgroup.procs" >"$cgroup/init/cgroup.procs" 2>/dev/null || true
fi
cd /opt/sandpiper
node_modules/.bin/node scripts/setup.mjs --quiet cgroups
exec node_modules/.bin/node packages/node/src/daemon/main.ts "$@"
