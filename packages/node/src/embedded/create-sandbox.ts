import {
  type CreateInstanceOptions,
  type Provider,
  Sandbox,
  type SandboxConfigOptions,
  SandboxManager,
} from "@sandpiper/core";
import { type ComposedProviderName, createProvider, defaultProvider, type ProviderOptions } from "./create-provider.ts";

export interface CreateSandboxOptions extends SandboxConfigOptions, ProviderOptions, CreateInstanceOptions {
  /** What runs it; "gvisor" unless given. */
  readonly provider?: ComposedProviderName | undefined;
  /** Stops a creation under way; nothing is left behind. */
  readonly signal?: AbortSignal | undefined;
}

/** One provider for all sandboxes of this program in the same place: it bounds how many of them start at once. */
const providers = new Map<string, Promise<Provider>>();

/**
 * Makes a sandbox in this very program, with no server. Disposing it destroys it:
 * `await using sandbox = await createSandbox({ memoryMib: 512 });`
 *
 * A program that ends without that, for example because it was killed, leaves its sandboxes behind; the first
 * createSandbox of the next program removes them.
 */
export async function createSandbox(options: CreateSandboxOptions = {}): Promise<Sandbox> {
  const { provider: name = defaultProvider, home, docker, qemu, vmDocker, signal, onProgress, ...config } = options;
  const key = JSON.stringify([name, home, docker, qemu, vmDocker]);
  let provider = providers.get(key);
  if (provider === undefined) {
    // Programs end, and a machine that waits for more sandboxes would keep this one from it.
    provider = reconciledProvider(name, { home, docker, qemu, vmDocker: { idleMs: 0, ...vmDocker } });
    providers.set(key, provider);
    // What kept this one from working may have changed when the next one asks.
    provider.catch(() => providers.delete(key));
  }
  return Sandbox.create(await provider, config, { signal, onProgress });
}

/**
 * Removes what dead programs left behind. Something that cannot be removed now is no reason to refuse a new sandbox: the
 * next program tries again, and `diagnose` shows it.
 */
async function reconciledProvider(name: ComposedProviderName, options: ProviderOptions): Promise<Provider> {
  const provider = createProvider(name, options);
  await new SandboxManager(provider).reconcile({ orphans: "destroy" });
  return provider;
}
