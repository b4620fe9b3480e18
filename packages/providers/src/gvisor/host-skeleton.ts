import type { ImageEntry } from "./image-entry.ts";

/** The uid and gid of `user`, which runs every command that names no other user. */
const USER_ID = 1000;

const directory = (path: string, mode = 0o755): ImageEntry => ({ kind: "directory", path, mode });
const file = (path: string, lines: readonly string[]): ImageEntry => ({
  kind: "file",
  path,
  text: lines.map((line) => `${line}\n`).join(""),
});

/** What the `host` image has in addition to the machine's programs: writable directories, and its own accounts. */
export const hostSkeleton: readonly ImageEntry[] = [
  ...["dev", "etc", "home", "media", "mnt", "opt", "proc", "run", "srv", "sys", "usr"].map((path) => directory(path)),
  ...["run/lock", "var", "var/cache", "var/lib", "var/log", "var/spool"].map((path) => directory(path)),
  directory("root", 0o700),
  { kind: "directory", path: "home/user", mode: 0o755, owner: USER_ID },
  directory("tmp", 0o1777),
  directory("var/tmp", 0o1777),
  // gVisor would mount a tmpfs on an empty /tmp, outside of the disk limit.
  directory("tmp/.X11-unix", 0o1777),
  { kind: "link", path: "var/run", target: "/run" },
  { kind: "link", path: "var/lock", target: "/run/lock" },
  { kind: "link", path: "etc/mtab", target: "/proc/mounts" },
  { kind: "link", path: "etc/os-release", target: "../usr/lib/os-release" },
  file("etc/passwd", [
    "root:x:0:0:root:/root:/bin/bash",
    "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin",
    `user:x:${USER_ID}:${USER_ID}:user:/home/user:/bin/bash`,
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
  ]),
  file("etc/group", [
    "root:x:0:",
    "daemon:x:1:",
    "adm:x:4:",
    "tty:x:5:",
    "mail:x:8:",
    "shadow:x:42:",
    "utmp:x:43:",
    "staff:x:50:",
    "users:x:100:",
    `user:x:${USER_ID}:`,
    "nogroup:x:65534:",
  ]),
  file("etc/hostname", ["sandpiper"]),
  file("etc/hosts", ["127.0.0.1 localhost sandpiper", "::1 localhost ip6-localhost ip6-loopback"]),
  file("etc/resolv.conf", ["# This sandbox has no network of its own."]),
  file("etc/nsswitch.conf", ["passwd: files", "group: files", "shadow: files", "hosts: files dns", "services: files"]),
  file("etc/profile", ['[ -n "$BASH_VERSION" ] && [ -r /etc/bash.bashrc ] && . /etc/bash.bashrc']),
  file("etc/bash.bashrc", ["[ -z \"$PS1\" ] || PS1='\\u@\\h:\\w\\$ '"]),
];
