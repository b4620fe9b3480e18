import {
  type CreateInstanceOptions,
  type Provider,
  Sandbox,
  type SandboxConfigOptions,
  SandboxManager,
} from "@sandpiper/core";
import {
  type ComposedProviderName,
  createProvider,
  defaultProvider,
  type ProviderOptions,
  stripTypes,
} from "./create-provider.ts";
import { type EmbeddedNetworkOptions, embeddedNetwork } from "./embedded-network.ts";

export interface CreateSandboxOptions
  extends SandboxConfigOptions,
    ProviderOptions,
    CreateInstanceOptions,
    EmbeddedNetworkOptions {
  /** The provider; "gvisor" by default. */
  readonly provider?: ComposedProviderName | undefined;
  /** Cancels the creation and removes everything it started. */
  readonly signal?: AbortSignal | undefined;
}

/** Shared by all sandboxes with the same settings, because a provider limits how many start concurrently. */
const providers = new Map<string, Promise<Provider>>();

/**
 * Creates a sandbox in this process, without a server. Disposing the sandbox destroys it:
 * `await using sandbox = await createSandbox({ memoryMib: 512 });`
 *
 * A killed program leaves its sandboxes behind; the first `createSandbox` of the next program removes them.
 */
export async function createSandbox(options: CreateSandboxOptions = {}): Promise<Sandbox> {
  const { provider: name = defaultProvider, signal, onProgress, ...rest } = options;
  const { network, networkSettings, onNetworkRequest, ...own } = rest;
  const serveNetwork = embeddedNetwork({ network, networkSettings, onNetworkRequest });
  const { home, docker, qemu, firecracker, firecrackerPath, vmDocker, ...config } = own;
  const key = JSON.stringify([name, home, docker, qemu, firecracker, firecrackerPath, vmDocker]);
  let provider = providers.get(key);
  if (provider === undefined) {
    // An idle machine would keep this process from ending.
    const machines = { idleMs: 0, ...vmDocker };
    provider = reconciledProvider(name, { home, docker, qemu, firecracker, firecrackerPath, vmDocker: machines });
    providers.set(key, provider);
    // The next call tries again: the cause of the failure may be gone by then.
    provider.catch(() => providers.delete(key));
  }
  const sandbox = await Sandbox.create(await provider, config, { signal, onProgress, stripTypes });
  serveNetwork?.(sandbox);
  return sandbox;
}

/** Removes the leftovers of dead programs. Ignores failures: the next program tries again, `diagnose` lists them. */
async function reconciledProvider(name: ComposedProviderName, options: ProviderOptions): Promise<Provider> {
  const provider = createProvider(name, options);
  await new SandboxManager(provider).reconcile({ orphans: "destroy" });
  return provider;
}
