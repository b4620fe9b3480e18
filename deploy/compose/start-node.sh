#!/bin/sh
# Starts a node in a container: cgroups first, then the node in place of this shell, so that signals reach it.
set -eu
cgroup=/sys/fs/cgroup
# In version 2 only a cgroup without processes may share out controllers, and all of a container begin in its top one.
if [ -f "$cgroup/cgroup.controllers" ]; then
  mkdir -p "$cgroup/init"
  xargs -rn1 <"$cgroup/cgroup.procs" >"$cgroup/init/cgroup.procs" 2>/dev/null || true
fi
cd /opt/sandpiper
node_modules/.bin/node scripts/setup.mjs --quiet cgroups
exec node_modules/.bin/node packages/node/src/daemon/main.ts "$@"
