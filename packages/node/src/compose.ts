import { resolve } from "node:path";
import { type ManagerConfigOptions, type Provider, SandboxManager } from "@sandpiper/core";
import { GvisorProvider, LocalProvider } from "@sandpiper/providers";

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
