import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Image } from "./node-image.ts";

export interface ContainerOptions {
  readonly name: string;
  /** The bed, which names the container's cgroup and namespaces. */
  readonly bed: string;
  readonly directory: string;
  readonly image: Image;
  /** Replaces the image's command. */
  readonly command?: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly volumes: readonly { readonly source: string; readonly target: string }[];
  /** No capabilities and no new privileges; a privileged container otherwise. */
  readonly isRestricted?: boolean | undefined;
  /** Addresses by name, for its /etc/hosts. */
  readonly hosts: Readonly<Record<string, string>>;
}

/** In the order of the kernel's numbers. */
const ALL_CAPABILITIES = [
  ...["CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP"],
  ...["LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER"],
  ...["SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE"],
  ...["SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP"],
  ...["MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF"],
  "CHECKPOINT_RESTORE",
].map((name) => `CAP_${name}`);
/** Like Docker's `--privileged`: all that this process can pass on. */
const CAPABILITIES = ALL_CAPABILITIES.filter((_, number) => (ownCapabilities() >> BigInt(number)) & 1n);
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The OCI runtime's description of a privileged container with its own cgroup namespace. */
export function containerSpec(options: ContainerOptions): object {
  const { bed, name, directory, image, env, volumes, command = image.command, isRestricted = false } = options;
  const capabilities = isRestricted ? [] : CAPABILITIES;
  const modules = image.nodeModules && {
    source: join(directory, "modules"),
    target: "/opt/sandpiper/node_modules",
  };
  const hosts = { source: join(directory, "hosts"), target: "/etc/hosts" };
  return {
    ociVersion: "1.0.2",
    hostname: name,
    root: { path: "rootfs", readonly: false },
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      cwd: "/",
      args: command,
      env: Object.entries({ PATH, HOSTNAME: name, ...image.env, ...env }).map(([key, value]) => `${key}=${value}`),
      noNewPrivileges: isRestricted,
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    },
    mounts: [
      ...systemMounts,
      ...[...image.binds, ...(modules ? [modules] : []), hosts].map((bind) => bindMount(bind, "ro")),
      ...volumes.map((volume) => bindMount(volume, "rw")),
    ],
    linux: {
      cgroupsPath: `/${bed}/${name}`,
      resources: { devices: [{ allow: true, access: "rwm" }] },
      namespaces: [
        ...["pid", "ipc", "uts", "mount", "cgroup"].map((type) => ({ type })),
        { type: "network", path: `/run/netns/${bed}-${name}` },
      ],
    },
  };
}

function ownCapabilities(): bigint {
  return BigInt(`0x${/^CapEff:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1]}`);
}

const systemMounts = [
  { destination: "/proc", type: "proc", source: "proc" },
  { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
  { destination: "/dev/pts", type: "devpts", source: "devpts", options: ["newinstance", "ptmxmode=0666", "gid=5"] },
  { destination: "/dev/shm", type: "tmpfs", source: "shm", options: ["nosuid", "noexec", "nodev", "size=64m"] },
  { destination: "/sys", type: "sysfs", source: "sysfs", options: ["rw"] },
  { destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["rw"] },
];

function bindMount(
  { source, target }: { readonly source: string; readonly target: string },
  mode: "ro" | "rw",
): object {
  return { destination: target, type: "bind", source, options: ["rbind", mode] };
}
