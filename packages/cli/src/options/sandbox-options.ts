import { resolve } from "node:path";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/option.ts";
import { containerFrom, containerOptions, dockerFrom } from "./container-options.ts";
import { parseDuration } from "./duration-option.ts";
import { parseLabels } from "./label-option.ts";
import { parseNumber } from "./number-option.ts";
import { quietOption } from "./quiet-option.ts";

/** What shapes a sandbox: every verb that makes one, or keeps some ready, takes these. */
export const shapeOptions: readonly Option[] = [
  {
    name: "provider",
    value: "NAME",
    choices: ["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"],
    summary: "what runs it: gvisor (default), qemu, firecracker, docker, vm-docker or local",
  },
  { name: "memory", value: "MIB", summary: "memory in MiB (256)" },
  { name: "cpus", value: "N", summary: "CPUs' worth of time, up to two decimals (2)" },
  { name: "disk", value: "MIB", summary: "room for written files in MiB (1024)" },
  { name: "processes", value: "N", summary: "processes and threads at once (256)" },
];

/** What is a new sandbox's own, whatever it is made of. */
export const ownOptions: readonly Option[] = [
  { name: "name", value: "NAME", summary: "a name to call it by" },
  { name: "label", value: "KEY=VALUE", isRepeatable: true, summary: "a label to find it by" },
  { name: "ttl", value: "TIME", summary: "destroy it after this time, such as 90 (seconds), 10m or 2h (never)" },
];

/** How a command is run. */
export const commandOptions: readonly Option[] = [
  { name: "env", value: "NAME[=VALUE]", isRepeatable: true, summary: "set a variable; without a value, yours" },
  { name: "cwd", value: "DIR", summary: "working directory inside" },
  { name: "user", value: "USER", summary: "user inside: a name, UID or UID:GID (user)" },
];

/** What verbs that make a sandbox for themselves let their user say about it. */
export const sandboxOptions: readonly Option[] = [
  ...shapeOptions,
  ...commandOptions,
  ...containerOptions,
  {
    name: "rootfs",
    value: "DIR",
    completes: "directory",
    summary: "directory to use as the root filesystem, never written to (this machine's programs)",
  },
  {
    name: "upload",
    value: "SRC:DST",
    isRepeatable: true,
    completes: "path",
    summary: "copy a file or directory in first",
  },
  { name: "embedded", summary: "in this very program, even if a node runs" },
  quietOption,
];

/** Variables are left out: they may be secrets, and what describes a sandbox is written down on disk. */
export function createOptionsFrom(arguments_: Arguments): CreateSandboxOptions {
  const rootfs = arguments_.get("rootfs");
  const container = containerFrom(arguments_);
  return {
    ...shapeFrom(arguments_),
    container,
    docker: dockerFrom(container),
    cwd: arguments_.get("cwd"),
    user: arguments_.get("user"),
    rootfs: rootfs === undefined ? undefined : resolve(rootfs),
  };
}

export function ownFrom(arguments_: Arguments) {
  const labels = arguments_.all("label");
  return {
    name: arguments_.get("name"),
    labels: labels.length === 0 ? undefined : parseLabels(labels),
    ttlMs: parseDuration(arguments_, "ttl"),
  };
}

export function shapeFrom(arguments_: Arguments) {
  return {
    provider: arguments_.get("provider") as CreateSandboxOptions["provider"],
    memoryMib: parseNumber(arguments_, "memory"),
    vcpuCount: parseNumber(arguments_, "cpus", { decimals: 2, example: 0.5 }),
    diskMib: parseNumber(arguments_, "disk"),
    maxProcesses: parseNumber(arguments_, "processes"),
  };
}
