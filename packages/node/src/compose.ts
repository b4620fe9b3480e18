import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type Clock, type ManagerConfigOptions, type Provider, SandboxManager } from "@sandpiper/core";
import { Guard, GvisorProvider, instanceCgroup, LocalProvider } from "@sandpiper/providers";

export { findAgent, findCgroups, findRunsc, LOCAL_WARNING, stateDirectory } from "@sandpiper/providers";

const constructors = { gvisor: GvisorProvider, local: LocalProvider } as const;

export type ComposedProviderName = keyof typeof constructors;

/** The providers there are, the default first. */
export const composedProviders: readonly ComposedProviderName[] = ["gvisor", "local"];
export const defaultProvider: ComposedProviderName = "gvisor";

export interface ProviderOptions {
  /** Where sandboxes and what they write are kept; $SANDPIPER_HOME or ~/.sandpiper unless given. */
  readonly home?: string | undefined;
}

export interface CreateManagerOptions extends ManagerConfigOptions, ProviderOptions {
  readonly provider?: ComposedProviderName | undefined;
}

export function createProvider(name: ComposedProviderName, { home }: ProviderOptions = {}): Provider {
  return new constructors[name](home === undefined ? {} : { stateDirectory: resolve(home) });
}

/** A manager of many sandboxes in this very program. Reconciling with what earlier programs left is its owner's call. */
export function createManager({ provider, home, ...config }: CreateManagerOptions = {}): SandboxManager {
  return new SandboxManager(createProvider(provider ?? defaultProvider, { home }), config);
}

/** Ends the instances of a node whose leases are over. In memory, if possible: a full disk must not end a lease. */
export function createGuard(home: string, clock: Clock): Guard {
  const place = createHash("sha256").update(home).digest("hex").slice(0, 16);
  const directory = existsSync("/run") ? join("/run/sandpiper", place) : join(home, "guard");
  const stateDirectory = join(home, "node");
  return new Guard({ directory, clock, cgroupPath: (id) => instanceCgroup(id, { stateDirectory }) });
}
