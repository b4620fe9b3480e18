import type { InstanceSpec } from "@sandpiper/core";
import { sharesOf } from "../host/cpu-shares.ts";
import { idMappings } from "./id-mappings.ts";
import type { Image } from "./image.ts";
import { bootMemoryBytes } from "./memory-limits.ts";
import { bindMount, IMAGE_MOUNT_POINT, tmpfsMount } from "./mount.ts";

/** The agent's path inside an instance. */
const AGENT_PATH = "/.sandpiper/agent";

/** Host processes for each process inside (two, for each of two users at their limit), and gVisor's own. */
const HOST_TASKS_PER_PROCESS = 4;
const HOST_TASKS_OF_SENTRY = 256;

const CPU_PERIOD_US = 100_000;

/** Below gVisor's own limit, because it holds a descriptor of the host for each open file. */
const MAX_OPEN_FILES = 16_384;

/**
 * Docker's default set without raw sockets. SYS_ADMIN and SYS_RESOURCE must stay out, because they exempt from the
 * process limit.
 */
const CAPABILITIES = [
  "CAP_AUDIT_WRITE",
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_MKNOD",
  "CAP_NET_BIND_SERVICE",
  "CAP_SETFCAP",
  "CAP_SETGID",
  "CAP_SETPCAP",
  "CAP_SETUID",
  "CAP_SYS_CHROOT",
];

const TUNSETIFF = 0x400454ca;
/** gVisor reads only these bits of the number of an ioctl. */
const IOCTL_BITS = 0xffffffff;

/**
 * Refuses TUN devices: gVisor cannot save a sandbox that has one, and any guest can attach one in a network namespace of
 * its own. gVisor itself decides about every other system call.
 */
const SECCOMP = {
  defaultAction: "SCMP_ACT_ALLOW",
  architectures: ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
  syscalls: [
    {
      names: ["ioctl"],
      action: "SCMP_ACT_ERRNO",
      args: [{ index: 1, value: IOCTL_BITS, valueTwo: TUNSETIFF, op: "SCMP_CMP_MASKED_EQ" }],
    },
  ],
};

const DEFAULT_ENV: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

export interface OciConfigOptions {
  readonly spec: InstanceSpec;
  readonly image: Image;
  /** The agent's binary on the host. */
  readonly agent: string;
  readonly cgroupPath: string;
  readonly canLimitSwap: boolean;
  readonly hasNetwork: boolean;
}

/** The `config.json` of an instance, as the OCI runtime specification defines it. */
export function ociConfig(options: OciConfigOptions): object {
  const { spec, image, agent, cgroupPath, canLimitSwap, hasNetwork } = options;
  const mappings = idMappings(spec.id);
  const network = hasNetwork ? ["--network", "redirected"] : [];
  const memoryBytes = bootMemoryBytes(spec);
  return {
    ociVersion: "1.0.2",
    hostname: "sandpiper",
    root: { path: IMAGE_MOUNT_POINT, readonly: false },
    process: {
      args: [AGENT_PATH, "--channel", "stdio", "--default-user", "user", "--kill-largest", ...network],
      cwd: "/",
      env: Object.entries(DEFAULT_ENV).map(([name, value]) => `${name}=${value}`),
      user: { uid: 0, gid: 0 },
      capabilities: {
        bounding: CAPABILITIES,
        effective: CAPABILITIES,
        inheritable: CAPABILITIES,
        permitted: CAPABILITIES,
      },
      rlimits: [
        { type: "RLIMIT_NPROC", soft: spec.maxProcesses, hard: spec.maxProcesses },
        { type: "RLIMIT_NOFILE", soft: MAX_OPEN_FILES, hard: MAX_OPEN_FILES },
      ],
    },
    mounts: [
      ...image.mounts,
      bindMount(agent, AGENT_PATH),
      tmpfsMount("/dev/shm", ["mode=1777", "nosuid", "nodev", `size=${Math.ceil(spec.memoryMib / 2)}m`]),
    ],
    linux: {
      namespaces: [
        ...["pid", "ipc", "uts", "mount", "user"].map((type) => ({ type })),
        // The namespace that the launcher made; without a network gVisor makes another.
        { type: "network", path: "/proc/self/ns/net" },
      ],
      uidMappings: mappings,
      gidMappings: mappings,
      cgroupsPath: cgroupPath,
      seccomp: SECCOMP,
      resources: {
        // The sum of memory and swap: the same value as memory means no swap.
        memory: { limit: memoryBytes, ...(canLimitSwap ? { swap: memoryBytes } : {}) },
        cpu: {
          quota: Math.round(spec.vcpuCount * CPU_PERIOD_US),
          period: CPU_PERIOD_US,
          shares: sharesOf(spec.vcpuCount),
        },
        pids: { limit: spec.maxProcesses * HOST_TASKS_PER_PROCESS + HOST_TASKS_OF_SENTRY },
      },
    },
  };
}
