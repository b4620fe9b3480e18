#!/bin/sh
# Stands in for Firecracker's jailer: the same arguments, directories, copies and changes of user, as far as the double
# of Firecracker can run with them. It stays in the root of the host, and takes paths for those of the jail.
set -eu
fail() { echo "jailer: $1" >&2; exit 1; }
id= program= uid= gid= base=/srv/jailer
while [ $# -gt 0 ]; do
  case "$1" in
    --id) id=$2; shift 2 ;;
    --exec-file) program=$2; shift 2 ;;
    --uid) uid=$2; shift 2 ;;
    --gid) gid=$2; shift 2 ;;
    --chroot-base-dir) base=$2; shift 2 ;;
    --resource-limit) case "$2" in fsize=[0-9]*|no-file=[0-9]*) ;; *) fail "invalid resource limit $2" ;; esac; shift 2 ;;
    --) shift; break ;;
    *) fail "unexpected argument $1" ;;
  esac
done
case "$id" in ''|*[!A-Za-z0-9-]*) fail "invalid id '$id'" ;; esac
[ ${#id} -le 64 ] || fail "the id is longer than 64 characters"
case "$uid$gid" in ''|*[!0-9]*) fail "invalid uid or gid" ;; esac
[ -d "$base" ] || fail "directory $base not found"
[ -x "$program" ] || fail "program $program not found"
name=$(basename "$(readlink -f "$program")")
case "$name" in *firecracker*) ;; *) fail "the name of the program does not contain 'firecracker'" ;; esac
jail=$base/$name/$id/root
mkdir -p "$jail/dev/net" "$jail/run"
cp "$program" "$jail/$name"
chown "$uid:$gid" "$jail" "$jail/run"
cd "$jail"
exec env -i PATH="$PATH" HOME="${HOME:-/root}" DOUBLE_UID="$uid" "./$name" --id="$id" --start-time-us=1 --start-time-cpu-us=1 "$@"
