import { abortError, type CreateSandboxBody, type SandboxError, type SessionStatus } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import { type ClientOptions, parseClientOptions } from "../client-options.ts";
import { collectOutput, type SessionResult } from "./collect-output.ts";
import type { StatusEvent } from "./session-event.ts";
import type { SessionExecution } from "./session-execution.ts";
import { SessionLink, type SessionLinkOptions } from "./session-link.ts";

type SandboxOptions = Pick<
  CreateSandboxBody,
  | "name"
  | "provider"
  | "image"
  | "memoryMib"
  | "vcpuCount"
  | "diskMib"
  | "maxProcesses"
  | "language"
  | "cwd"
  | "user"
  | "timeoutMs"
  | "ttlMs"
  | "idleTimeoutMs"
>;

export interface SessionCreateOptions extends SandboxOptions, ClientOptions, CallOptions {}

export interface SessionAttachOptions extends ClientOptions, CallOptions {
  /** The sandbox's token. Without it, the session cannot take over after a dropped network, and waits instead. */
  readonly token?: string | undefined;
  /** Replace another client that is attached; needs the token. */
  readonly takeover?: boolean | undefined;
  /** How long to wait while another client is attached; 0 by default, which fails with `sandbox_in_use` at once. */
  readonly waitMs?: number | undefined;
  /** Continue an execution after the output that an earlier program has received: its `id` and `next`. */
  readonly resume?: { readonly execution: string; readonly next?: string | undefined } | undefined;
}

export interface RunOptions extends CallOptions {
  /** Called as output arrives. */
  readonly onStdout?: ((text: string) => void) | undefined;
  readonly onStderr?: ((text: string) => void) | undefined;
}

export type SessionStatusUpdate = Readonly<Pick<StatusEvent, "status" | "message" | "rolledBackTo">>;

interface SessionListeners {
  /** Each status that the node reports. */
  readonly status: (update: SessionStatusUpdate) => void;
  /** Code of an earlier client still runs, or has ended without a reader. */
  readonly execution: (execution: SessionExecution) => void;
}

/**
 * A client that is attached to one sandbox and runs code in it, one piece at a time. It reconnects after a lost
 * connection, and follows the sandbox from node to node.
 */
export class Session implements AsyncDisposable {
  readonly #link: SessionLink;
  readonly #listeners: { readonly [Name in keyof SessionListeners]: Set<SessionListeners[Name]> } = {
    status: new Set(),
    execution: new Set(),
  };
  #status: SessionStatus;

  private constructor(status: SessionStatus, options: Omit<SessionLinkOptions, "onStatus" | "onExecution">) {
    this.#status = status;
    this.#link = new SessionLink({
      ...options,
      onStatus: ({ status, message, rolledBackTo }) => {
        if (!status.startsWith("SANDBOX_EXECUTION_")) this.#status = status;
        for (const listener of this.#listeners.status) listener({ status, message, rolledBackTo });
      },
      onExecution: (execution) => {
        for (const listener of this.#listeners.execution) listener(execution);
      },
    });
  }

  /** Creates a sandbox and attaches to it. */
  static async create(options: SessionCreateOptions = {}): Promise<Session> {
    const { url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing, signal, ...sandbox } = options;
    const spec = parseClientOptions({ url, apiKey, fetch, webSocket, reconnectTimeoutMs, timing });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(sandbox)) if (value !== undefined) query.set(name, String(value));
    const session = new Session("SANDBOX_CREATING", { spec, createPath: `/create?${query}` });
    await session.#link.ready(signal);
    return session;
  }

  /** Attaches to an existing sandbox, wherever it is. */
  static async attach(id: string, options: SessionAttachOptions = {}): Promise<Session> {
    const { token, takeover, waitMs, resume, signal, ...client } = options;
    const spec = parseClientOptions(client);
    const session = new Session("SANDBOX_RESTORING", {
      spec,
      id,
      token: token ?? ownToken(spec.apiKey),
      takeover,
      waitMs,
      resume,
    });
    await session.#link.ready(signal);
    return session;
  }

  /** The sandbox's id. */
  get id(): string {
    return this.#link.id as string;
  }

  /** The sandbox's token, if the session created it or was given it. Store it with the id to attach again. */
  get token(): string | undefined {
    return this.#link.token;
  }

  /** The sandbox's last status. */
  get status(): SessionStatus {
    return this.#status;
  }

  /** False while the session reconnects, and after its end. */
  get isAttached(): boolean {
    return this.#link.isAttached;
  }

  /** The code that runs now, started by this client or an earlier one. */
  get execution(): SessionExecution | undefined {
    return this.#link.executions.current;
  }

  /** Resolves when the session has ended: with the error, or undefined after `close`. */
  get closed(): Promise<SandboxError | undefined> {
    return this.#link.ended;
  }

  /** Calls back until the returned function is called. */
  on<Name extends keyof SessionListeners>(name: Name, listener: SessionListeners[Name]): () => void {
    const listeners: Set<SessionListeners[Name]> = this.#listeners[name];
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Runs code to its end. A non-zero exit code is a result. */
  async run(language: string, code: string, options: RunOptions = {}): Promise<SessionResult> {
    const { signal } = options;
    if (signal?.aborted) throw abortError(signal, `code in sandbox ${this.id}`);
    return await collectOutput((onOutput) => this.#link.executions.start({ language, code }, { onOutput }), {
      ...options,
      what: `code in sandbox ${this.id}`,
    });
  }

  /** Starts code and returns immediately; a loop over the result reads its output. */
  start(language: string, code: string): SessionExecution {
    return this.#link.executions.start({ language, code });
  }

  /** Leaves the sandbox. It and its code keep running, and `Session.attach` finds them again. */
  close(): Promise<void> {
    return this.#link.close();
  }

  /** Destroys the sandbox and closes the session. */
  async destroy({ signal }: CallOptions = {}): Promise<void> {
    const path = { id: this.id };
    await this.#link.http.empty("deleteSandbox", { path, signal, isRepeatable: true });
    await this.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** The key can itself be a sandbox's token. */
function ownToken(apiKey: string | undefined): string | undefined {
  return apiKey?.startsWith("spt_") ? apiKey : undefined;
}
