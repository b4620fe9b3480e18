import { type Client, type CreateOptions, type ForkOptions, type Sandbox, SandboxError } from "@sandpiper/sdk";
import { KeptCommands } from "./kept-commands.ts";
import { DEFAULT_LIMITS, type SessionLimits } from "./session-limits.ts";

/** A model that thinks, or a user who is away, must not lose a sandbox; a program that was killed must not leave one for long. */
const DEFAULT_IDLE_TIMEOUT_MS = 30 * 60_000;

export interface McpSessionOptions {
  /**
   * What it makes belongs to the key of this client, which the session uses and does not close. A function is asked when
   * the client is first needed, and again after it has failed.
   */
  readonly client: Client | (() => Promise<Client>);
  /** Of every sandbox that the session makes, unless a call says otherwise: provider, image, limits, labels and so on. */
  readonly defaults?: Omit<CreateOptions, "signal" | "idempotencyKey" | "onProgress"> | undefined;
  readonly limits?: Partial<SessionLimits> | undefined;
  /** How long a sandbox that the session made may go unused; 30 minutes by default. A process in it is no use of it. */
  readonly idleTimeoutMs?: number | undefined;
  /**
   * What becomes of sandboxes when the session ends. `asked`, the default: those made with `keep` stay; `always`: all stay;
   * `never`: none can, because their node ends with the session.
   */
  readonly keep?: "asked" | "always" | "never" | undefined;
  /** Told what went wrong where no caller is: when a sandbox could not be destroyed at the end. */
  readonly onError?: ((error: SandboxError) => void) | undefined;
}

/** What one client of the MCP server has: its default sandbox, and all that it made and leaves to be destroyed. */
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

  /** Where its sandboxes are. */
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

  /** Those that the end of the session destroys. */
  get own(): readonly Sandbox[] {
    return [...this.#made.values()];
  }

  /** Whether the end of the session destroys it. */
  isTemporary(id: string): boolean {
    return this.#made.has(id);
  }

  /** The one with this id, or else the default sandbox, which is made when it is first asked for. */
  async sandbox(id: string | undefined, signal?: AbortSignal): Promise<Sandbox> {
    this.#requireOpen();
    if (id !== undefined) return this.#made.get(id) ?? (await (await this.client()).sandboxes.connect(id, { signal }));
    this.#default ??= this.#makeDefault();
    return await this.#default;
  }

  /** Makes one. It is not stopped half-way, since then nobody would know which sandbox to destroy. */
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

  /** Makes sandboxes that go on from where one is; they are the session's as those that it creates are. */
  async fork(sandbox: Sandbox, options: ForkOptions): Promise<readonly Sandbox[]> {
    this.#requireOpen();
    const isKept = this.#options.keep === "always";
    const forks = await this.#register(sandbox.fork(options), isKept);
    // A fork has the lifetime of its original, which may be one that stays.
    if (!isKept) await Promise.all(forks.map((fork) => fork.update(this.#lifetime)));
    return forks;
  }

  async destroy(sandbox: Sandbox): Promise<void> {
    await sandbox.destroy();
    this.#forget(sandbox.id);
  }

  /**
   * What to add to a failure for the model; forgets a default sandbox that is gone, so that the next call makes another.
   * `id` is what the call named.
   */
  noteOf(thrown: unknown, id: string | undefined): string | undefined {
    if (!isSandboxLost(SandboxError.from(thrown))) return undefined;
    const lost = id ?? this.#defaultId;
    if (lost === undefined) return undefined;
    const wasDefault = lost === this.#defaultId;
    this.#forget(lost);
    return wasDefault
      ? "The session's default sandbox is gone, with its files; it may have been idle for too long. The next call without sandbox_id makes a new one."
      : "Leave sandbox_id out to use the session's default sandbox, or call list_sandboxes.";
  }

  /** Destroys what the session made and was not asked to keep. Calls after this fail; a second end waits for the first. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  get #lifetime() {
    // Without these exceptions a server that was started in the background would keep an abandoned sandbox for ever.
    return {
      idleTimeoutMs: this.#options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
      idleExcept: ["process", "output"] satisfies CreateOptions["idleExcept"],
    } as const;
  }

  /** An image is one of its provider's; whoever asks for another provider does not mean it. */
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

  /** Whatever is being made when the session ends is waited for, and destroyed. */
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
    message: "no sandbox was created: it cannot be kept, because this server's sandboxes end with it",
  });
}
