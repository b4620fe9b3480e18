import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Clock, type ManagerConfigOptions, type Provider, SandboxManager } from "@sandpiper/core";
import {
  DockerProvider,
  FirecrackerProvider,
  Guard,
  GvisorProvider,
  instanceCgroup,
  LocalProvider,
  QemuProvider,
} from "@sandpiper/providers";

export { findAgent, findCgroups, findRunsc, LOCAL_WARNING, stateDirectory } from "@sandpiper/providers";

export type ComposedProviderName = "gvisor" | "qemu" | "firecracker" | "docker" | "local";

/** The providers there are, the default first. */
export const composedProviders: readonly ComposedProviderName[] = ["gvisor", "qemu", "firecracker", "docker", "local"];
/** Those that most machines cannot have: nothing is wrong with a machine that lacks them. */
export const optionalProviders: readonly ComposedProviderName[] = ["firecracker"];
export const defaultProvider: ComposedProviderName = "gvisor";

/** What provider docker is told; what is left out is as docs/docker.md says. */
export interface DockerSettings {
  /** Where the engine listens; what the environment says unless given. */
  readonly url?: string | undefined;
  /** Of containers that name none. */
  readonly image?: string | undefined;
  /** Directories of the engine's machine that may be mounted; none unless given. */
  readonly allowedPaths?: readonly string[] | undefined;
  /** That may be asked for. */
  readonly networks?: readonly string[] | undefined;
  readonly runtime?: string | undefined;
}

/** What provider qemu is told. */
interface QemuSettings {
  /** How many machines of each shape that was asked for are started ahead; none unless given. */
  readonly preStarted?: number | undefined;
}

export interface ProviderOptions {
  /** Where sandboxes and what they write are kept; $SANDPIPER_HOME or ~/.sandpiper unless given. */
  readonly home?: string | undefined;
  readonly docker?: DockerSettings | undefined;
  readonly qemu?: QemuSettings | undefined;
}

export interface CreateManagerOptions extends ManagerConfigOptions, ProviderOptions {
  readonly provider?: ComposedProviderName | undefined;
}

export function createProvider(name: ComposedProviderName, options: ProviderOptions = {}): Provider {
  const { home, docker = {}, qemu } = options;
  const place = home === undefined ? {} : { stateDirectory: resolve(home) };
  switch (name) {
    case "gvisor":
      return new GvisorProvider(place);
    case "qemu":
      return new QemuProvider({ ...place, ...qemu });
    case "firecracker":
      return new FirecrackerProvider(place);
    case "local":
      return new LocalProvider(place);
    case "docker": {
      const { url: engineUrl, ...settings } = docker;
      return new DockerProvider({ ...place, engineUrl, ...settings });
    }
  }
}

/** A manager of many sandboxes in this very program. Reconciling with what earlier programs left is its owner's call. */
export function createManager({ provider, home, docker, qemu, ...config }: CreateManagerOptions = {}): SandboxManager {
  return new SandboxManager(createProvider(provider ?? defaultProvider, { home, docker, qemu }), config);
}

/** Ends the instances of a node whose leases are over. In memory, if possible: a full disk must not end a lease. */
export function createGuard(home: string, clock: Clock): Guard {
  const place = createHash("sha256").update(home).digest("hex").slice(0, 16);
  const directory = existsSync("/run") ? join("/run/sandpiper", place) : join(home, "guard");
  const stateDirectory = join(home, "node");
  return new Guard({ directory, clock, cgroupPath: (id) => instanceCgroup(id, { stateDirectory }) });
}
