import { resolve } from "node:path";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { CreateSandboxBody } from "@sandpiper/protocol";
import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/syntax.ts";
import { containerFrom, containerOptions, dockerFrom, vmDockerFrom } from "./container-options.ts";
import { embeddedOption, quietOption } from "./shared-options.ts";
import { parseDuration, parseEnv, parseLabels, parseNumber, parseSizeMib } from "./values.ts";

/** The provider and the limits: every verb that creates a sandbox, or sets a warm pool, takes these. */
export const shapeOptions: readonly Option[] = [
  {
    name: "provider",
    value: "NAME",
    choices: ["gvisor", "qemu", "firecracker", "docker", "vm-docker", "local"],
    default: "gvisor",
    summary: "what runs the sandbox",
  },
  { name: "memory", value: "SIZE", default: "256", summary: "memory limit, such as 512 (MiB), 512M or 2G" },
  { name: "cpus", value: "N", default: "2", summary: "CPU limit, with up to two decimals" },
  { name: "disk", value: "SIZE", default: "1024", summary: "limit for written files, such as 4G" },
  { name: "processes", value: "N", default: "256", summary: "limit for processes and threads" },
];

export const onFailureOption: Option = {
  name: "on-failure",
  value: "ACTION",
  choices: ["restore", "keep"],
  summary: "if the sandbox ends by itself: restore its newest checkpoint at its next use, or keep it failed",
};

export const secretOption: Option = {
  name: "secret",
  value: "NAME[=VARIABLE]",
  isRepeatable: true,
  summary: "let the sandbox use a secret; VARIABLE holds its placeholder inside",
};

/** Undefined if none is given. */
export function secretsFrom(arguments_: Arguments): CreateSandboxBody["secrets"] {
  const texts = arguments_.all("secret");
  if (texts.length === 0) return undefined;
  return texts.map((text) => {
    const [name = "", env] = text.split("=");
    return env === undefined ? name : { name, env };
  });
}

/** For verbs that create a sandbox on the node, from an image or a checkpoint. */
export const ownOptions: readonly Option[] = [
  { name: "name", value: "NAME", summary: "name the sandbox" },
  { name: "label", value: "KEY=VALUE", isRepeatable: true, summary: "label the sandbox" },
  {
    name: "ttl",
    value: "DURATION",
    summary: "destroy the sandbox after DURATION, such as 90 (seconds), 10m or 2h",
  },
];

export const commandOptions: readonly Option[] = [
  {
    name: "env",
    value: "NAME[=VALUE]",
    isRepeatable: true,
    summary: "set an environment variable; without VALUE, copy yours",
  },
  { name: "cwd", value: "DIR", summary: "working directory inside the sandbox" },
  { name: "user", value: "USER", default: "user", summary: "user inside the sandbox: a name, UID or UID:GID" },
];

/** For verbs that create a temporary sandbox. */
export const sandboxOptions: readonly Option[] = [
  ...shapeOptions,
  ...commandOptions,
  ...containerOptions,
  {
    name: "rootfs",
    value: "DIR",
    completes: "directory",
    summary: "use DIR instead of this machine's programs as a read-only root filesystem; implies --embedded",
  },
  {
    name: "upload",
    value: "SRC:DST",
    isRepeatable: true,
    completes: "path",
    summary: "copy a file or directory into the sandbox first",
  },
  embeddedOption,
  quietOption,
];

export function commandFrom(arguments_: Arguments) {
  return { env: parseEnv(arguments_), cwd: arguments_.get("cwd"), user: arguments_.get("user") };
}

/** Variables are left out: they may be secrets, and the node stores these options on disk. */
export function createOptionsFrom(arguments_: Arguments): CreateSandboxOptions {
  const rootfs = arguments_.get("rootfs");
  const container = containerFrom(arguments_);
  return {
    ...shapeFrom(arguments_),
    container,
    docker: dockerFrom(container),
    vmDocker: vmDockerFrom(container),
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
    memoryMib: parseSizeMib(arguments_, "memory"),
    vcpuCount: parseNumber(arguments_, "cpus", { decimals: 2, example: 0.5 }),
    diskMib: parseSizeMib(arguments_, "disk"),
    maxProcesses: parseNumber(arguments_, "processes"),
  };
}
