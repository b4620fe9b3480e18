import { type Provider, type Sandbox, SandboxError, SandboxManager } from "@sandpiper/core";
import type { PoolKeyBody, SandboxId } from "@sandpiper/protocol";

export interface ProvidersOptions {
  readonly providers: readonly Provider[];
  /** Where an image that is only a name is looked for. */
  readonly imagesDir?: string | undefined;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

/** The providers of a node, each with the manager that keeps its sandboxes. */
export class Providers {
  readonly byName: ReadonlyMap<string, Provider>;
  readonly #managers: ReadonlyMap<string, SandboxManager>;

  constructor({ providers, imagesDir, onError }: ProvidersOptions) {
    this.byName = new Map(providers.map((provider) => [provider.name, provider]));
    // The node counts its sandboxes itself, over all providers.
    const config = { maxSandboxes: 0, imagesDir };
    this.#managers = new Map(
      providers.map((provider) => [provider.name, new SandboxManager(provider, config, { onError })]),
    );
  }

  manager(name: string): SandboxManager {
    const manager = this.#managers.get(name);
    if (manager !== undefined) return manager;
    throw new SandboxError("failed_precondition", {
      reason: "unknown_provider",
      message: `this node has no provider ${name}`,
      hint: "start it with the provider that this sandbox was made with",
    });
  }

  /** Boots an instance and nothing more: whose it is, and with which environment, is not its business. */
  boot(
    key: PoolKeyBody,
    options: { readonly id?: SandboxId; readonly signal?: AbortSignal | undefined },
  ): Promise<Sandbox> {
    const { provider, image, memoryMib, vcpuCount, diskMib, maxProcesses } = key;
    return this.manager(provider).create({ rootfs: image, memoryMib, vcpuCount, diskMib, maxProcesses }, options);
  }

  /** One that has ended by itself is being removed or gone already. */
  async destroy(provider: string, id: SandboxId): Promise<void> {
    const manager = this.manager(provider);
    if (manager.exists(id)) await manager.destroy(id);
  }
}
