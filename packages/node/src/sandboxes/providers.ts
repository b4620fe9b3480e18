import { join } from "node:path";
import {
  type CheckpointRequirements,
  type DestroyOptions,
  type PreparedSandbox,
  type Provider,
  type Sandbox,
  type SandboxConfigOptions,
  SandboxError,
  SandboxManager,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceKey } from "./instance-key.ts";

export interface ProvidersOptions {
  readonly providers: readonly Provider[];
  /** Where an image that is only a name is looked for. */
  readonly imagesDir?: string | undefined;
  /** Told about failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
}

export interface BootOptions extends DestroyOptions {
  readonly id?: SandboxId | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For nobody yet. */
  readonly isWarm?: boolean | undefined;
}

/** Of instances that were made for nobody: without a record nobody has ever had anything in them. */
export const WARM_LABEL = "warm";

/** The providers of a node, each with the manager that keeps its sandboxes. */
export class Providers {
  readonly byName: ReadonlyMap<string, Provider>;
  readonly #options: ProvidersOptions;
  readonly #managers: ReadonlyMap<string, SandboxManager>;

  constructor(options: ProvidersOptions) {
    const { providers, imagesDir, onError } = options;
    this.#options = options;
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
    throw unknownProvider(name);
  }

  require(name: string): Provider {
    const provider = this.byName.get(name);
    if (provider !== undefined) return provider;
    throw unknownProvider(name);
  }

  /**
   * Has what an instance starts from fetched or built, which may take minutes: whoever waits for that must not keep others from
   * booting.
   */
  async fetchImage(key: InstanceKey, signal: AbortSignal): Promise<void> {
    const policy = key.container?.imagePullPolicy ?? "missing";
    try {
      const provider = this.require(key.provider);
      await provider.containers?.pull(key.image, { policy, signal });
      await provider.provide?.(this.#rootfsOf(key), { signal });
    } catch (thrown) {
      throw publicBootError(SandboxError.from(thrown, signal.aborted ? "canceled" : "internal"), key);
    }
  }

  /** Boots an instance and nothing more: whose it is, and with which environment, is not its business. */
  async boot(key: InstanceKey, { isWarm = false, ...options }: BootOptions): Promise<Sandbox> {
    const { provider } = key;
    let sandbox: Sandbox;
    try {
      const config = { ...this.#configOf(key), ...(isWarm ? { labels: { [WARM_LABEL]: "true" } } : {}) };
      sandbox = await this.manager(provider).create(config, options);
    } catch (thrown) {
      throw publicBootError(SandboxError.from(thrown), key);
    }
    await warmUp(sandbox);
    if (!options.signal?.aborted) return sandbox;
    await this.destroy(provider, sandbox.id, options);
    throw SandboxError.from(options.signal.reason, "canceled");
  }

  /** Makes a place for a sandbox of this shape that was saved. */
  async prepare(
    key: InstanceKey,
    options: { readonly id: SandboxId; readonly signal?: AbortSignal | undefined },
  ): Promise<PreparedSandbox> {
    try {
      return await this.manager(key.provider).prepare(this.#configOf(key), options);
    } catch (thrown) {
      throw publicBootError(SandboxError.from(thrown), key);
    }
  }

  /** What a node must have in common with this one to restore what is saved here. */
  async checkpointRequirements(key: InstanceKey): Promise<CheckpointRequirements> {
    return (await this.byName.get(key.provider)?.checkpointRequirements(this.#rootfsOf(key))) ?? {};
  }

  #rootfsOf({ image }: InstanceKey): string {
    const { imagesDir } = this.#options;
    return image === "host" || imagesDir === undefined ? image : join(imagesDir, image);
  }

  #configOf({ provider, image, container, ...shape }: InstanceKey): SandboxConfigOptions {
    const { memoryMib, vcpuCount, diskMib, maxProcesses } = shape;
    const limits = { memoryMib, vcpuCount, diskMib, maxProcesses };
    if (!this.byName.get(provider)?.capabilities.supportsContainers) return { rootfs: image, ...limits };
    // A registry has been asked already, where it was to be.
    const imagePullPolicy = container?.imagePullPolicy === "never" ? "never" : "missing";
    return { container: { ...container, image, imagePullPolicy }, ...limits };
  }

  /** One that has ended by itself is being removed or gone already. */
  async destroy(provider: string, id: SandboxId, options: DestroyOptions = {}): Promise<void> {
    const manager = this.manager(provider);
    if (manager.exists(id)) await manager.destroy(id, options);
  }

  /** The same for good: of one that has ended by itself the volumes are still there. */
  async remove(provider: string, id: SandboxId): Promise<void> {
    const manager = this.manager(provider);
    const runs = manager.exists(id) && manager.get(id).state === "ready";
    await this.destroy(provider, id);
    if (!runs) await this.require(provider).remove(id);
  }
}

function unknownProvider(name: string): SandboxError {
  return new SandboxError("failed_precondition", {
    reason: "unknown_provider",
    message: `this node has no provider ${name}`,
    hint: "start it with the provider that this sandbox was made with",
  });
}

/**
 * The first command in an instance takes twice as long as the next; an image without this one is just not warmed up.
 * Every instance has run it, whether somebody waits for it or not: process ids would tell those apart.
 */
async function warmUp(sandbox: Sandbox): Promise<void> {
  await sandbox.exec(["/bin/true"], { timeoutMs: 5000 }).catch(() => {});
}

/** What a runtime says about a failure is full of paths of the host: it is for the log, where the cause is written. */
function publicBootError(error: SandboxError, { provider, image }: InstanceKey): SandboxError {
  const { reason } = error;
  if (reason.includes("rootfs")) {
    return new SandboxError("invalid_argument", {
      reason: "unusable_image",
      message: `this node has no image ${JSON.stringify(image)} that provider ${provider} can use`,
      hint: 'use "host", or ask whoever runs the node which images there are',
      details: { image, provider },
      cause: error,
    });
  }
  if (error.code !== "internal") return error;
  return new SandboxError("internal", {
    reason,
    message: `provider ${provider} could not start the sandbox`,
    hint: "the node's log says why",
    cause: error,
  });
}
