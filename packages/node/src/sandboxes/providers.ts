import {
  type CheckpointRequirements,
  type DestroyOptions,
  type PreparedSandbox,
  type Provider,
  type RequirementsOptions,
  type Sandbox,
  type SandboxConfigOptions,
  SandboxError,
  SandboxManager,
  type StripTypes,
} from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceKey } from "./instance-key.ts";

export interface ProvidersOptions {
  readonly providers: readonly Provider[];
  /** The directory of named images. */
  readonly imagesDir?: string | undefined;
  /** How long a starting agent may take to answer. */
  readonly connectTimeoutMs?: number | undefined;
  /** Receives failures that no caller waits for. */
  readonly onError: (error: SandboxError, id: SandboxId) => void;
  readonly stripTypes: StripTypes;
}

export interface BootOptions extends DestroyOptions {
  readonly id?: SandboxId | undefined;
  readonly signal?: AbortSignal | undefined;
  /** For a warm pool. */
  readonly isWarm?: boolean | undefined;
}

/** Marks instances of warm pools. Without a record, such an instance holds no sandbox and can be removed. */
export const WARM_LABEL = "warm";

/** The node's providers, each with the manager of its sandboxes. */
export class Providers {
  readonly byName: ReadonlyMap<string, Provider>;
  readonly #managers: ReadonlyMap<string, SandboxManager>;

  constructor({ providers, imagesDir, ...dependencies }: ProvidersOptions) {
    this.byName = new Map(providers.map((provider) => [provider.name, provider]));
    // The node itself limits the number of sandboxes, across all providers.
    const config = { maxSandboxes: 0, imagesDir };
    this.#managers = new Map(
      providers.map((provider) => [provider.name, new SandboxManager(provider, config, dependencies)]),
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
   * Pulls or builds the image of an instance. This can take minutes, so call it outside of a boot slot: it must not block other
   * boots.
   */
  async fetchImage(key: InstanceKey, signal: AbortSignal): Promise<void> {
    const policy = key.container?.imagePullPolicy ?? "missing";
    try {
      const provider = this.require(key.provider);
      await provider.containers?.pull(key.image, { policy, signal });
      await provider.provide?.(this.manager(key.provider).imagePath(key.image), { signal });
    } catch (thrown) {
      throw publicBootError(SandboxError.from(thrown, signal.aborted ? "canceled" : "unexpected"), key);
    }
  }

  /** Boots an instance, independent of its owner and environment. */
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

  /** Creates a prepared instance for a saved sandbox of this shape. */
  async prepare(
    key: InstanceKey,
    options: { readonly id: SandboxId; readonly signal?: AbortSignal | undefined },
  ): Promise<PreparedSandbox> {
    try {
      return await this.manager(key.provider).prepare(this.#configOf(key), { ...options, saved: key.saved });
    } catch (thrown) {
      throw publicBootError(SandboxError.from(thrown), key);
    }
  }

  /** What a node must have in common with this one to restore its checkpoints. */
  async checkpointRequirements(
    { provider, image }: Pick<InstanceKey, "provider" | "image">,
    options: RequirementsOptions = {},
  ): Promise<CheckpointRequirements> {
    if (!this.byName.has(provider)) return {};
    return await this.require(provider).checkpointRequirements(this.manager(provider).imagePath(image), options);
  }

  #configOf({ provider, image, container, env, ...shape }: InstanceKey): SandboxConfigOptions {
    const { memoryMib, vcpuCount, diskMib, maxProcesses } = shape;
    const limits = { memoryMib, vcpuCount, diskMib, maxProcesses };
    if (!this.byName.get(provider)?.capabilities.supportsContainers) return { rootfs: image, ...limits };
    // `fetchImage` has already pulled the image if the policy requires it.
    const imagePullPolicy = container?.imagePullPolicy === "never" ? "never" : "missing";
    return { container: { ...container, image, imagePullPolicy }, env, ...limits };
  }

  /** Does nothing for an instance that has ended by itself: its manager removes it. */
  async destroy(provider: string, id: SandboxId, options: DestroyOptions = {}): Promise<void> {
    const manager = this.manager(provider);
    if (manager.exists(id)) await manager.destroy(id, options);
  }

  /** Like `destroy`, and also deletes the volumes that an instance leaves when it ends by itself, unless they are kept. */
  async remove(provider: string, id: SandboxId, options: DestroyOptions = {}): Promise<void> {
    const manager = this.manager(provider);
    const isRunning = manager.exists(id) && manager.get(id).state === "ready";
    await this.destroy(provider, id, options);
    if (!isRunning) await this.require(provider).remove(id, options);
  }
}

function unknownProvider(name: string): SandboxError {
  return new SandboxError("provider_not_configured", {
    message: `provider ${name} is not enabled on this node`,
    hint: `add ${name} to the node's setting providers (SANDPIPER_PROVIDERS)`,
  });
}

/**
 * The first command in an instance takes twice as long as the next. An image without /bin/true is not warmed up.
 * Every instance runs this command, so that process ids do not reveal which ones come from a warm pool.
 */
async function warmUp(sandbox: Sandbox): Promise<void> {
  await sandbox.exec(["/bin/true"], { timeoutMs: 5000 }).catch(() => {});
}

/** Hides the runtime's message, which contains paths of the host. The log shows it as the cause. */
function publicBootError(error: SandboxError, { provider, image }: InstanceKey): SandboxError {
  const { reason } = error;
  if (reason.includes("rootfs")) {
    return new SandboxError("unusable_image", {
      message: `this node has no image ${JSON.stringify(image)} that provider ${provider} can use`,
      details: { image, provider },
      cause: error,
    });
  }
  if (error.code !== "internal") return error;
  return SandboxError.fromFields({
    code: "internal",
    reason,
    message: `provider ${provider} could not start the sandbox`,
    hint: "see the node's log for the cause",
    cause: error,
  });
}
