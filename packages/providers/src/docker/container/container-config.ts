import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { label, sandboxLabels } from "../engine/labels.ts";
import type { EngineImage } from "../image/image.ts";
import { AGENT_PROGRAM } from "../storage/agent-volume.ts";
import type { EngineMount } from "../storage/mounts.ts";
import { openDirArguments } from "../storage/volumes.ts";
import { containerName } from "./container-name.ts";
import { networkOf } from "./network.ts";
import { publishedPorts } from "./ports.ts";

const MIB = 1024 * 1024;
const CPU_PERIOD_US = 100_000;
/** Below what engines themselves may have open: a limit cannot be raised above theirs. */
const MAX_OPEN_FILES = 16_384;
/** The agent is one process of the container's. */
const AGENT_PROCESSES = 8;

/** gVisor's own memory and the kernel's processes that it takes count as the container's. */
const SENTRY_MEMORY_MIB = 64;
const SENTRY_TASKS = 256;
const TASKS_PER_PROCESS = 4;

/**
 * What the agent needs to act for the users inside and to manage their files and processes. Whatever is not here root inside
 * does not have either, and nobody gains anything by executing a program.
 */
const CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/** Who acts when nobody is named, in images that do not say so: where there is no such user it is root. */
const DEFAULT_USER = "user";

export interface ContainerConfigOptions {
  readonly spec: InstanceSpec;
  readonly image: EngineImage;
  readonly mounts: readonly EngineMount[];
  readonly home: string;
  readonly runtime: string | undefined;
  /** What the agent is told of it. */
  readonly channel: string;
}

/** How the engine is asked for a container. Whatever stands here is shown to everybody who may use the engine. */
export function containerConfig(options: ContainerConfigOptions): Docker.ContainerCreateOptions {
  const { spec, image, mounts, home, runtime, channel } = options;
  const { ExposedPorts, PortBindings } = publishedPorts(spec);
  const user = defaultUser(image);
  return {
    name: containerName(spec.id),
    Image: image.id,
    Hostname: "sandpiper",
    User: "0:0",
    Entrypoint: [AGENT_PROGRAM],
    Cmd: ["--channel", channel, "--default-user", user, ...openDirArguments(spec, home)],
    // Where its standard streams are the agent's channel, they outlive whoever is attached.
    OpenStdin: channel === "stdio",
    StdinOnce: false,
    Tty: false,
    StopSignal: "SIGTERM",
    Healthcheck: { Test: ["NONE"] },
    Labels: { ...imageLabels(image, user), ...sandboxLabels(spec, home) },
    ExposedPorts,
    HostConfig: {
      ...limits(spec, runtime),
      Mounts: [...mounts],
      NetworkMode: networkOf(spec),
      PortBindings,
      Privileged: false,
      CapDrop: ["ALL"],
      CapAdd: [...CAPABILITIES],
      SecurityOpt: ["no-new-privileges"],
      // Its types do not know this one.
      ...{ CgroupnsMode: "private" },
      IpcMode: "private",
      Init: false,
      // Nobody reads what is written there, and a disk would fill up with it.
      LogConfig: { Type: "none", Config: {} },
      RestartPolicy: { Name: "no" },
      ...(spec.container?.isRootReadOnly === true ? readOnlyRoot() : {}),
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
}

/** Whom the image's programs run as. An image that was made of a container has the agent's user, and its labels say whose it was. */
function defaultUser({ user, labels }: EngineImage): string {
  const said = labels[label.user] ?? user;
  const [name = "", group = ""] = said.split(":");
  if (name === "") return DEFAULT_USER;
  const isNumber = (text: string) => /^\d+$/.test(text);
  // The agent knows the groups of users with a name.
  return isNumber(name) && isNumber(group) ? said : name;
}

/** Kept by an image that is made of the container, and so by what is restored from it. */
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
    // Memory and swap together: no more than memory alone means no swap.
    MemorySwap: memoryBytes,
    // As a share of time, since an engine refuses a number of processors that its machine does not have.
    CpuPeriod: CPU_PERIOD_US,
    CpuQuota: Math.round(spec.vcpuCount * CPU_PERIOD_US),
    PidsLimit: tasks,
    ShmSize: Math.ceil(spec.memoryMib / 2) * MIB,
    Ulimits: [
      { Name: "nofile", Soft: MAX_OPEN_FILES, Hard: MAX_OPEN_FILES },
      // Of the kernel's own it would count those of other containers as well.
      ...(isGvisor ? [processes] : []),
    ],
  };
}

/** What programs expect to write in is memory then, and so is what the agent keeps of their output. */
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
