import { type Command, type ExecOptions, type ExecResult, SandboxError, type SandboxId } from "@sandpiper/protocol";
import { exitError } from "../agent/exit-error.ts";
import type { ByteSource } from "../agent/upload.ts";
import type { DirEntry } from "../files/file-entry.ts";
import type { CreateInstanceOptions, DestroyOptions, InstanceExit, InstanceRecord, Provider } from "../provider.ts";
import type { SandboxOptions } from "../sandbox/boot-sandbox.ts";
import { type PrepareOptions, Sandbox } from "../sandbox/sandbox.ts";
import type { SandboxConfigOptions } from "../sandbox/sandbox-config.ts";
import { requireReady } from "../sandbox/sandbox-state.ts";
import { type ManagerConfig, type ManagerConfigOptions, parseManagerConfig } from "./manager-config.ts";
import { type ReconcileOptions, type ReconcileResult, reconcile } from "./reconcile.ts";
import { configOfNewSandbox, imagePath } from "./sandbox-options.ts";

/** The first address that vsock leaves to guests. */
const FIRST_VSOCK_CID = 3;
/** How many crashed sandboxes are remembered for precise errors. */
const MAX_REMEMBERED_ENDS = 1000;

export interface ManagerDependencies
  extends Pick<SandboxOptions, "clock" | "randomUuid" | "connectTimeoutMs" | "rpcTimeoutMs" | "stripTypes"> {
  /** Receives failures that have no caller, such as a failed cleanup after a crash. */
  readonly onError?: ((error: SandboxError, id: SandboxId) => void) | undefined;
}

export interface CreateOptions extends CreateInstanceOptions {
  readonly signal?: AbortSignal | undefined;
  readonly id?: SandboxId | undefined;
}

/** A prepared instance that waits for its sandbox. */
export interface PreparedSandbox {
  /** May be called once. On failure it removes the instance. */
  restore(
    directory: string,
    options: {
      readonly createdAt: Date;
      readonly signal?: AbortSignal | undefined;
      /** Called when the instance runs again and only its agent has to answer. */
      readonly onRestored?: (() => void) | undefined;
    },
  ): Promise<Sandbox>;
  /** Removes it unused. */
  destroy(): Promise<void>;
}

/** A refused sandbox still belongs to the caller. */
export type RegisterResult =
  | { readonly ok: true; readonly id: SandboxId }
  | { readonly ok: false; readonly error: SandboxError; readonly sandbox: Sandbox };

export interface DestroyAllResult {
  readonly destroyed: readonly SandboxId[];
  readonly failed: readonly { readonly id: SandboxId; readonly error: SandboxError }[];
}

/** The registry of live sandboxes. It holds no lock during slow work, so one sandbox never blocks another. */
export class SandboxManager implements AsyncDisposable {
  readonly config: ManagerConfig;
  readonly #provider: Provider;
  readonly #dependencies: ManagerDependencies;
  readonly #sandboxes = new Map<SandboxId, Sandbox>();
  readonly #creations = new Set<Promise<unknown>>();
  readonly #ends = new Map<SandboxId, SandboxError>();
  #stopCreations = new AbortController();
  #isClosed = false;
  #reserved = 0;
  #nextVsockCid = FIRST_VSOCK_CID;

  constructor(provider: Provider, options: ManagerConfigOptions = {}, dependencies: ManagerDependencies = {}) {
    this.#provider = provider;
    this.config = parseManagerConfig(options);
    this.#dependencies = dependencies;
  }

  /** Takes a slot first, so that starting sandboxes count against the limit. */
  async create(options: SandboxConfigOptions = {}, createOptions: CreateOptions = {}): Promise<Sandbox> {
    const { id, signal: caller, ...rest } = createOptions;
    if (id !== undefined && this.#sandboxes.has(id)) throw alreadyRegistered(id);
    const config = configOfNewSandbox(this.config, options, this.#nextVsockCid++);
    return this.#inSlot(caller, (signal) =>
      Sandbox.create(this.#provider, config, { ...this.#dependencies, ...rest, id, signal }),
    );
  }

  /** Prepares an instance for a saved sandbox; `restore` restores and registers it. */
  async prepare(options: SandboxConfigOptions, { id, signal, saved }: PrepareOptions): Promise<PreparedSandbox> {
    const config = configOfNewSandbox(this.config, options, this.#nextVsockCid++);
    const provider = this.#provider;
    const instance = await Sandbox.prepare(provider, config, { id, signal, saved });
    return {
      restore: (directory, { createdAt, signal: caller, onRestored }) => {
        const restore = async (path: string, abort: AbortSignal) => {
          const restored = await instance.restore(path, abort);
          onRestored?.();
          return restored;
        };
        const prepared = { id, restore, destroy: () => instance.destroy() };
        return this.#inSlot(caller, (signal) =>
          Sandbox.restore(provider, config, { ...this.#dependencies, prepared, directory, createdAt, signal }),
        );
      },
      destroy: () => instance.destroy(),
    };
  }

  /** The path of an image's root filesystem. Accepts references of container images, too, which have none. */
  imagePath(image: string): string {
    return imagePath(this.config, image);
  }

  createDefault(createOptions: CreateOptions = {}): Promise<Sandbox> {
    return this.create({}, createOptions);
  }

  /** Registers a ready sandbox that was created elsewhere. */
  register(sandbox: Sandbox): RegisterResult {
    try {
      requireReady(sandbox.id, sandbox.state, sandbox.failure);
      if (this.#sandboxes.has(sandbox.id)) throw alreadyRegistered(sandbox.id);
      this.#reserve();
      this.#reserved--;
      this.#add(sandbox);
      return { ok: true, id: sandbox.id };
    } catch (thrown) {
      return { ok: false, error: SandboxError.from(thrown), sandbox };
    }
  }

  /** Takes over a sandbox that an earlier program left running. */
  adopt(found: SandboxId | InstanceRecord): Promise<Sandbox> {
    return this.#inSlot(undefined, (signal) => Sandbox.adopt(this.#provider, found, { ...this.#dependencies, signal }));
  }

  /** Takes over a container that was stopped and has been started again. */
  adoptStarted(id: SandboxId): Promise<Sandbox> {
    return this.#inSlot(undefined, (signal) =>
      Sandbox.adopt(this.#provider, id, { ...this.#dependencies, signal, hasLostProcesses: true }),
    );
  }

  get(id: SandboxId): Sandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox !== undefined) return sandbox;
    throw this.#ends.get(id) ?? noSuchSandbox(id);
  }

  exists(id: SandboxId): boolean {
    return this.#sandboxes.has(id);
  }

  list(): readonly SandboxId[] {
    return [...this.#sandboxes.keys()];
  }

  get count(): number {
    return this.#sandboxes.size;
  }

  /** Frees the slot when the sandbox is completely removed; may be called again after a failure. */
  async destroy(id: SandboxId, options: DestroyOptions = {}): Promise<void> {
    const sandbox = this.get(id);
    await sandbox.destroy(options);
    this.#sandboxes.delete(id);
  }

  /** Also cancels sandboxes that are being created. Continues after failures and reports them. */
  async destroyAll(): Promise<DestroyAllResult> {
    this.#stopCreations.abort(creationStopped());
    this.#stopCreations = new AbortController();
    await Promise.allSettled(this.#creations);
    const ids = this.list();
    const outcomes = await Promise.allSettled(ids.map((id) => this.destroy(id)));
    const destroyed: SandboxId[] = [];
    const failed: { id: SandboxId; error: SandboxError }[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const id = ids[index] as SandboxId;
      if (outcome.status === "fulfilled") destroyed.push(id);
      else failed.push({ id, error: SandboxError.from(outcome.reason) });
    }
    return { destroyed, failed };
  }

  /** Compares the provider's instances with the registry, and adopts or removes those without an owner. */
  reconcile(options: ReconcileOptions): Promise<ReconcileResult> {
    return reconcile(this.#provider, {
      ...options,
      adopt: (record) => this.adopt(record),
      isKnown: (id) => this.exists(id),
    });
  }

  async withSandbox<T>(id: SandboxId, use: (sandbox: Sandbox) => T | Promise<T>): Promise<T> {
    return use(this.get(id));
  }

  async execute(id: SandboxId, command: Command, options: ExecOptions = {}): Promise<ExecResult> {
    return this.get(id).exec(command, options);
  }

  async executeCode(
    id: SandboxId,
    { language, code }: { readonly language?: string | undefined; readonly code: string },
    options: ExecOptions = {},
  ): Promise<ExecResult> {
    return this.get(id).executeCode(language, code, options);
  }

  async readFile(id: SandboxId, path: string): Promise<Uint8Array> {
    return this.get(id).readFile(path);
  }

  async writeFile(id: SandboxId, path: string, content: ByteSource): Promise<void> {
    return this.get(id).writeFile(path, content);
  }

  async listDir(id: SandboxId, path: string): Promise<readonly DirEntry[]> {
    return this.get(id).listDir(path);
  }

  /** Destroys all sandboxes and refuses new ones; rejects if some are left. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const { failed } = await this.destroyAll();
    if (failed.length === 0) return;
    throw new SandboxError("cleanup_failed", {
      message: `${failed.length} sandboxes could not be destroyed: ${failed.map(({ id }) => id).join(", ")}`,
      details: { ids: failed.map(({ id }) => id) },
      cause: new AggregateError(failed.map(({ error }) => error)),
    });
  }

  async #inSlot(signal: AbortSignal | undefined, make: (signal: AbortSignal) => Promise<Sandbox>): Promise<Sandbox> {
    this.#reserve();
    const stop = this.#stopCreations.signal;
    const making = make(signal === undefined ? stop : AbortSignal.any([signal, stop]));
    this.#creations.add(making);
    try {
      const sandbox = await making;
      this.#add(sandbox);
      return sandbox;
    } finally {
      this.#reserved--;
      this.#creations.delete(making);
    }
  }

  #reserve(): void {
    if (this.#isClosed) throw managerClosed();
    const { maxSandboxes } = this.config;
    if (maxSandboxes > 0 && this.#sandboxes.size + this.#reserved >= maxSandboxes) throw limitReached(maxSandboxes);
    this.#reserved++;
  }

  #add(sandbox: Sandbox): void {
    this.#sandboxes.set(sandbox.id, sandbox);
    this.#nextVsockCid = Math.max(this.#nextVsockCid, sandbox.config.vsockCid + 1);
    sandbox.closed.then((exit) => this.#left(sandbox, exit));
  }

  /** Frees the slot and the leftovers of a sandbox whose instance ended without `destroy`. */
  async #left(sandbox: Sandbox, exit: InstanceExit): Promise<void> {
    const { id } = sandbox;
    if (exit.reason === "destroyed" || this.#sandboxes.get(id) !== sandbox) return;
    this.#ends.set(id, exitError(`sandbox ${id}`, exit));
    if (this.#ends.size > MAX_REMEMBERED_ENDS) this.#ends.delete(this.#ends.keys().next().value as SandboxId);
    try {
      // A stopped container can be started again.
      if (exit.reason !== "stopped") await sandbox.destroy({ keepsVolumes: true });
    } catch (thrown) {
      this.#dependencies.onError?.(SandboxError.from(thrown), id);
    }
    this.#sandboxes.delete(id);
  }
}

function noSuchSandbox(id: SandboxId): SandboxError {
  return new SandboxError("no_such_sandbox", {
    message: `sandbox ${id} not found`,
    hint: "list() returns the existing ones",
    details: { id },
  });
}

function alreadyRegistered(id: SandboxId): SandboxError {
  return new SandboxError("sandbox_exists", { message: `sandbox ${id} is already registered`, details: { id } });
}

function limitReached(maxSandboxes: number): SandboxError {
  return new SandboxError("sandbox_limit", {
    message: `no sandbox was created: the limit of ${maxSandboxes} sandboxes, existing or being created, is reached`,
    details: { maxSandboxes },
  });
}

function managerClosed(): SandboxError {
  return new SandboxError("manager_closed", { message: "no sandbox was created: the manager has been closed" });
}

function creationStopped(): SandboxError {
  return new SandboxError("destroy_all", { message: "the sandbox was not created: all sandboxes are being destroyed" });
}
