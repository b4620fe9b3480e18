import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { sharesOf } from "../../host/cpu-shares.ts";
import { label, sandboxLabels } from "../engine/labels.ts";
import type { EngineImage } from "../image/image.ts";
import { AGENT_PROGRAM } from "../storage/agent-volume.ts";
import { openDirArguments } from "../storage/volumes.ts";
import { userOf } from "./image-user.ts";
import { containerName } from "./inspect-container.ts";
import { NO_NETWORK, networkOf } from "./network.ts";
import { publishedPorts } from "./ports.ts";
import { serviceLabels } from "./service.ts";

const MIB = 1024 * 1024;
const CPU_PERIOD_US = 100_000;
/** Lower than the engine's own limit, which containers cannot exceed. */
const MAX_OPEN_FILES = 16_384;
/** The agent's threads count as processes of the container. */
const AGENT_PROCESSES = 8;

/** gVisor's own memory and host threads count towards the container's limits. */
const SENTRY_MEMORY_MIB = 64;
const SENTRY_TASKS = 256;
const TASKS_PER_PROCESS = 4;

/**
 * What the agent needs to act for the container's users and to manage their files and processes. Root in the container has
 * no other capabilities, and no-new-privileges prevents programs from gaining any.
 */
const CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/**
 * What the agent needs to redirect the network of a container that has no device. The agent drops both before it starts
 * any process.
 */
const REDIRECT_CAPABILITIES = ["NET_ADMIN", "SETPCAP"];
/** An address that the container redirects to the agent. */
const NAME_SERVER = "10.0.2.3";

/** The default user of images that set none; the agent uses root where this user does not exist. */
const DEFAULT_USER = "user";

export interface ContainerConfigOptions {
  readonly spec: InstanceSpec;
  readonly image: EngineImage;
  readonly mounts: readonly Docker.MountSettings[];
  readonly home: string;
  readonly runtime: string | undefined;
  /** The agent's --channel argument. */
  readonly channel: string;
}

/** The engine's create options. They contain no secrets, because every client of the engine can read them. */
export function containerConfig(options: ContainerConfigOptions): Docker.ContainerCreateOptions {
  const { spec, image, mounts, home, runtime, channel } = options;
  const { ExposedPorts, PortBindings } = publishedPorts(spec);
  const user = defaultUser(image);
  const isRedirected = networkOf(spec) === NO_NETWORK;
  const network = isRedirected ? ["--network", "private"] : [];
  return {
    name: containerName(spec.id),
    Image: image.id,
    Hostname: "sandpiper",
    User: "0:0",
    Entrypoint: [AGENT_PROGRAM],
    Cmd: ["--channel", channel, "--default-user", user, ...network, ...openDirArguments(spec, home)],
    // As the agent's channel, the standard streams must outlive each attached client.
    OpenStdin: channel === "stdio",
    StdinOnce: false,
    Tty: false,
    StopSignal: "SIGTERM",
    Healthcheck: { Test: ["NONE"] },
    // Sandpiper's own labels last, so that no other replaces them.
    Labels: {
      ...spec.container?.labels,
      ...imageLabels(image, user),
      ...serviceLabels(spec, image),
      ...sandboxLabels(spec, home),
    },
    ExposedPorts,
    HostConfig: {
      ...limits(spec, runtime),
      Mounts: [...mounts],
      NetworkMode: networkOf(spec),
      // The agent could not change the file in a container whose files are read-only.
      ...(isRedirected ? { Dns: [NAME_SERVER] } : {}),
      PortBindings,
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: [...CAPABILITIES, ...(isRedirected ? REDIRECT_CAPABILITIES : [])],
      SecurityOpt: ["no-new-privileges"],
      // Missing in the types of dockerode.
      ...{ CgroupnsMode: "private" },
      IpcMode: "private",
      Init: false,
      // The log is never read, and would fill the disk.
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      ...(spec.container?.isRootReadOnly === true ? readOnlyRoot() : {}),
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
}

/** The user of the image's programs. A checkpoint's image has the agent's user, and keeps the original one in a label. */
function defaultUser({ user, labels }: EngineImage): string {
  return userOf(labels[label.user] ?? user) || DEFAULT_USER;
}

/** A checkpoint's image inherits these labels, and so does a container restored from it. */
function imageLabels({ id, labels }: EngineImage, user: string): Record<string, string> {
  return { [label.user]: user, [label.image]: labels[label.image] ?? id };
}

function limits(spec: InstanceSpec, runtime: string | undefined): Docker.HostConfig {
  const isGvisor = runtime?.includes("runsc") === true;
  const memoryBytes = (spec.memoryMib + (isGvisor ? SENTRY_MEMORY_MIB : 0)) * MIB;
  const tasks = isGvisor ? spec.maxProcesses * TASKS_PER_PROCESS + SENTRY_TASKS : spec.maxProcesses + AGENT_PROCESSES;
  const processes = { Name: "nproc", Soft: spec.maxProcesses, Hard: spec.maxProcesses };
  return {
    Memory: memoryBytes,
    // The limit of memory plus swap; equal to Memory, it disables swap.
    MemorySwap: memoryBytes,
    // A quota, because engines reject NanoCpus above the machine's number of processors.
    CpuPeriod: CPU_PERIOD_US,
    CpuQuota: Math.round(spec.vcpuCount * CPU_PERIOD_US),
    CpuShares: sharesOf(spec.vcpuCount),
    PidsLimit: tasks,
    ShmSize: Math.ceil(spec.memoryMib / 2) * MIB,
    Ulimits: [
      { Name: "nofile", Soft: MAX_OPEN_FILES, Hard: MAX_OPEN_FILES },
      // On the host kernel nproc counts the processes of all containers with the same uid.
      ...(isGvisor ? [processes] : []),
    ],
  };
}

/** Directories that programs and the agent must write to are in memory. */
function readOnlyRoot(): Docker.HostConfig {
  return {
    ReadonlyRootfs: true,
    Tmpfs: {
      "/tmp": "rw,nosuid,nodev,exec,mode=1777",
      "/run": "rw,nosuid,nodev,mode=755",
      "/var/lib/sandpiper": "rw,nosuid,nodev,noexec,mode=700",
    },
  };
}
