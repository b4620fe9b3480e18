import { type Client, type CreateOptions, type ForkOptions, type Sandbox, SandboxError } from "@sandpiper/sdk";
import { KeptCommands } from "./kept-commands.ts";
import { DEFAULT_LIMITS, type SessionLimits } from "./session-limits.ts";

/** Long enough for a slow model or an absent user; short enough to remove the sandboxes of a killed program soon. */
const DEFAULT_IDLE_TIMEOUT_MS = 30 * 60_000;

export interface McpSessionOptions {
  /**
   * Its sandboxes belong to the key of this client, which the session does not close. A function is called when the client
   * is first needed, and again after it has failed.
   */
  readonly client: Client | (() => Promise<Client>);
  /** Defaults for new sandboxes: provider, image, limits, labels and so on. */
  readonly defaults?: Omit<CreateOptions, "signal" | "idempotencyKey" | "onProgress"> | undefined;
  readonly limits?: Partial<SessionLimits> | undefined;
  /** How long a sandbox of the session may be idle; 30 minutes by default. Background processes do not count as activity. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * Which sandboxes outlive the session: with `asked`, the default, those created with `keep`; with `always`, all; with
   * `never`, none, because their node ends with the session.
   */
  readonly keep?: "asked" | "always" | "never" | undefined;
  /** Receives errors that have no caller, such as a sandbox that could not be destroyed at the end. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

/** The state of one MCP client: its default sandbox, and the sandboxes to destroy at its end. */
export class McpSession implements AsyncDisposable {
  readonly limits: SessionLimits;
  readonly commands: KeptCommands;
  readonly #options: McpSessionOptions;
  readonly #defaults: NonNullable<McpSessionOptions["defaults"]>;
  readonly #made = new Map<string, Sandbox>();
  readonly #making = new Set<Promise<unknown>>();
  #client: Promise<Client> | undefined;
  #default: Promise<Sandbox> | undefined;
  #defaultId: string | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: McpSessionOptions) {
    this.limits = Object.freeze({ ...DEFAULT_LIMITS, ...options.limits });
    this.commands = new KeptCommands(this.limits.keptCommands);
    this.#options = options;
    this.#defaults = Object.fromEntries(
      Object.entries(options.defaults ?? {}).filter(([, value]) => value !== undefined),
    );
  }

  /** Undefined while there is none. */
  get defaultId(): string | undefined {
    return this.#defaultId;
  }

  /** The client of the node that runs its sandboxes. */
  async client(): Promise<Client> {
    this.#requireOpen();
    const { client } = this.#options;
    if (typeof client !== "function") return client;
    this.#client ??= client();
    this.#client.catch(() => {
      this.#client = undefined;
    });
    return await this.#client;
  }

  /** The sandboxes that are destroyed when the session ends. */
  get own(): readonly Sandbox[] {
    return [...this.#made.values()];
  }

  /** Whether it is destroyed when the session ends. */
  isTemporary(id: string): boolean {
    return this.#made.has(id);
  }

  /** Returns the sandbox with this id or, by default, the default sandbox, which it creates on first use. */
  async sandbox(id: string | undefined, signal?: AbortSignal): Promise<Sandbox> {
    this.#requireOpen();
    if (id !== undefined) return this.#made.get(id) ?? (await (await this.client()).sandboxes.connect(id, { signal }));
    this.#default ??= this.#makeDefault();
    return await this.#default;
  }

  /** Creates a sandbox. It ignores cancellation, because a half-created sandbox could not be destroyed later. */
  async create(
    options: CreateOptions = {},
    { keep = false }: { readonly keep?: boolean | undefined } = {},
  ): Promise<Sandbox> {
    this.#requireOpen();
    if (keep && this.#options.keep === "never") throw cannotKeep();
    const isKept = keep || this.#options.keep === "always";
    const lifetime = isKept ? {} : this.#lifetime;
    const body = { ...lifetime, ...this.#defaultsFor(options), ...options };
    const creating = this.client().then(({ sandboxes }) => sandboxes.create(body));
    await this.#register(
      creating.then((sandbox) => [sandbox]),
      isKept,
    );
    return await creating;
  }

  /** Forks a sandbox; the forks belong to the session like the sandboxes it creates. */
  async fork(sandbox: Sandbox, options: ForkOptions): Promise<readonly Sandbox[]> {
    this.#requireOpen();
    const isKept = this.#options.keep === "always";
    const forks = await this.#register(sandbox.fork(options), isKept);
    // A fork inherits the lifetime of its original, which may be a kept sandbox.
    if (!isKept) await Promise.all(forks.map((fork) => fork.update(this.#lifetime)));
    return forks;
  }

  async destroy(sandbox: Sandbox): Promise<void> {
    await sandbox.destroy();
    this.#forget(sandbox.id);
  }

  /**
   * Returns advice to add to an error. Forgets a default sandbox that is gone, so that the next call creates another.
   * `id` is the sandbox_id of the call.
   */
  noteOf(thrown: unknown, id: string | undefined): string | undefined {
    if (!isSandboxLost(SandboxError.from(thrown))) return undefined;
    const lost = id ?? this.#defaultId;
    if (lost === undefined) return undefined;
    const wasDefault = lost === this.#defaultId;
    this.#forget(lost);
    return wasDefault
      ? "The session's default sandbox and its files are gone; it may have been idle for too long. The next call without sandbox_id creates a new one."
      : "Omit sandbox_id to use the session's default sandbox, or call list_sandboxes.";
  }

  /** Destroys the session's sandboxes, except kept ones. Later calls fail; a second call waits for the first. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  get #lifetime() {
    // Without these exceptions a background server would keep an abandoned sandbox forever.
    return {
      idleTimeoutMs: this.#options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
      idleExcept: ["process", "output"] satisfies CreateOptions["idleExcept"],
    } as const;
  }

  /** The default image belongs to the default provider, so a call for another provider drops it. */
  #defaultsFor({ provider }: CreateOptions): CreateOptions {
    const { image, container, ...rest } = this.#defaults;
    return provider === undefined || provider === rest.provider ? this.#defaults : rest;
  }

  async #makeDefault(): Promise<Sandbox> {
    try {
      const sandbox = await this.create();
      this.#defaultId = sandbox.id;
      return sandbox;
    } catch (thrown) {
      this.#default = undefined;
      throw thrown;
    }
  }

  /** Sandboxes that are being created when the session ends are awaited and destroyed. */
  async #register(making: Promise<readonly Sandbox[]>, isKept: boolean): Promise<readonly Sandbox[]> {
    const made = making.then((sandboxes) => {
      if (!isKept) for (const sandbox of sandboxes) this.#made.set(sandbox.id, sandbox);
      return sandboxes;
    });
    this.#making.add(made);
    try {
      return await made;
    } finally {
      this.#making.delete(made);
    }
  }

  #forget(id: string): void {
    this.#made.delete(id);
    this.commands.forgetSandbox(id);
    if (id !== this.#defaultId) return;
    this.#default = undefined;
    this.#defaultId = undefined;
  }

  async #end(): Promise<void> {
    await Promise.allSettled(this.#making);
    const destroyed = await Promise.allSettled([...this.#made.values()].map((sandbox) => sandbox.destroy()));
    this.#made.clear();
    for (const result of destroyed) {
      if (result.status === "rejected") this.#options.onError?.(SandboxError.from(result.reason));
    }
  }

  #requireOpen(): void {
    if (this.#ending === undefined) return;
    throw new SandboxError("session_ended", { message: "the session has ended" });
  }
}

function isSandboxLost({ code, reason }: SandboxError): boolean {
  return reason === "no_such_sandbox" || (code === "gone" && reason !== "process_lost");
}

function cannotKeep(): SandboxError {
  return new SandboxError("cannot_keep", {
    message: "no sandbox was created: this server cannot keep sandboxes, because they end with it",
  });
}
