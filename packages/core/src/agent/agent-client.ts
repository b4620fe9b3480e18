import {
  type AgentMethod,
  type AgentParams,
  type AgentResult,
  abortError,
  type Clock,
  PROTOCOL_GENERATION,
  SandboxError,
  systemClock,
} from "@sandpiper/protocol";
import type { ConnectedChannel, InstanceExit } from "../provider.ts";
import { AgentCall } from "./agent-call.ts";
import { AgentConnection, type ConnectionFaults } from "./agent-connection.ts";
import { explainClose } from "./explain-close.ts";

export const DEFAULT_RPC_TIMEOUT_MS = 30_000;

export interface AgentClientOptions {
  /** Cancels the opening only. */
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  readonly randomUuid?: (() => string) | undefined;
  /** How long a call may go unanswered. */
  readonly rpcTimeoutMs?: number | undefined;
  /** A new agent must answer a ping to count as ready; for one that ran before, the hello is enough. */
  readonly pings?: boolean | undefined;
  /** The name of the other side in error messages. */
  readonly label?: string | undefined;
  /** The cause to report if the channel closes because the instance has ended. */
  readonly exited?: Promise<InstanceExit> | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Infinity for no limit. */
  readonly timeoutMs?: number | undefined;
  readonly attachment?: Uint8Array | undefined;
}

export interface BeginOptions<M extends AgentMethod> extends CallOptions {
  readonly id?: string;
  /** Gives the call its streams before the request leaves. */
  readonly prepare?: (call: AgentCall<M>) => void;
}

/** Speaks the agent protocol on one channel. Calls run concurrently; answers are matched by id. */
export class AgentClient {
  readonly clock: Clock;
  readonly randomUuid: () => string;
  readonly rpcTimeoutMs: number;
  readonly label: string;
  readonly #connection: AgentConnection;
  #hello: AgentResult<"hello"> | undefined;
  #nextId = 1;

  private constructor(connected: ConnectedChannel, options: AgentClientOptions) {
    this.clock = options.clock ?? systemClock;
    this.randomUuid = options.randomUuid ?? (() => crypto.randomUUID());
    this.rpcTimeoutMs = options.rpcTimeoutMs ?? DEFAULT_RPC_TIMEOUT_MS;
    this.label = options.label ?? "the sandbox";
    this.#connection = new AgentConnection(connected.channel, {
      clock: this.clock,
      explainClose: (cause) => explainClose({ cause, label: this.label, clock: this.clock, exited: options.exited }),
    });
  }

  /** Sends hello and, on request, a ping; closes the channel on failure. */
  static async open(connected: ConnectedChannel, options: AgentClientOptions = {}): Promise<AgentClient> {
    const client = new AgentClient(connected, options);
    const id = client.randomUuid();
    const { signal } = options;
    try {
      client.#connection.open(id, connected.needsResync);
      client.#hello = await client.begin("hello", { generation: PROTOCOL_GENERATION }, { id, signal }).result;
      requireKnownGeneration(client.label, client.#hello.generation);
      // Not sent with hello: an answer before hello's would be skipped as an earlier caller's.
      if (options.pings) await client.ping({ signal });
      return client;
    } catch (thrown) {
      const error = SandboxError.from(thrown);
      client.#connection.close(error);
      throw error;
    }
  }

  /** The agent's hello of this channel. */
  get hello(): AgentResult<"hello"> {
    if (this.#hello === undefined) throw new Error("AgentClient.open has not finished");
    return this.#hello;
  }

  get isClosed(): boolean {
    return this.#connection.isClosed;
  }

  /** Resolves with the error when the channel has ended. */
  get closed(): Promise<SandboxError> {
    return this.#connection.closedWith;
  }

  /** Calls without an answer so far. */
  get openCalls(): number {
    return this.#connection.openCalls;
  }

  get faults(): Readonly<ConnectionFaults> {
    return this.#connection.faults;
  }

  /** Counts what the guest's data costs a reader; a promise when the reader should wait before it continues. */
  work(units: number): Promise<void> | undefined {
    return this.#connection.work(units);
  }

  close(reason?: SandboxError): void {
    this.#connection.close(
      reason ?? new SandboxError("channel_closed", { message: `this program closed the channel to ${this.label}` }),
    );
  }

  /** Sends a request and resolves with its checked result. */
  call<M extends AgentMethod>(method: M, params: AgentParams<M>, options: CallOptions = {}): Promise<AgentResult<M>> {
    return this.begin(method, params, options).result;
  }

  /** Sends a request and returns the call, to stream or cancel. Requests of one microtask turn are sent in one write. */
  begin<M extends AgentMethod>(method: M, params: AgentParams<M>, options: BeginOptions<M> = {}): AgentCall<M> {
    const id = options.id ?? this.#nextId++;
    const call = new AgentCall(this.#connection, id, method);
    options.prepare?.(call);
    const { signal, timeoutMs = this.rpcTimeoutMs } = options;
    if (signal?.aborted) {
      call.fail(abortError(signal, `${method} on ${this.label}`));
      return call;
    }
    try {
      this.#connection.send({ jsonrpc: "2.0", id, method, params }, options.attachment);
    } catch (thrown) {
      call.fail(SandboxError.from(thrown));
      return call;
    }
    this.#connection.add(id, call);
    if (!call.isOpen) return call;
    if (timeoutMs !== Number.POSITIVE_INFINITY) {
      call.onSettled(this.clock.schedule(timeoutMs, () => call.cancel(this.timeoutError(method, timeoutMs))));
    }
    if (signal !== undefined) {
      const abort = () => call.cancel(abortError(signal, `${method} on ${this.label}`));
      signal.addEventListener("abort", abort, { once: true });
      call.onSettled(() => signal.removeEventListener("abort", abort));
    }
    return call;
  }

  timeoutError(method: string, timeoutMs: number): SandboxError {
    return new SandboxError("rpc_timeout", {
      message: `${method} on ${this.label} was not answered within ${timeoutMs} ms and was canceled`,
      details: { method, timeoutMs },
    });
  }

  async ping(options: CallOptions = {}): Promise<void> {
    await this.call("ping", {}, options);
  }

  /**
   * Stops the traffic at frame boundaries in both directions. Until `thaw` the agent runs no calls, and new calls wait here.
   */
  async quiesce(options: CallOptions = {}): Promise<void> {
    const call = this.begin("system.quiesce", {}, options);
    this.#connection.hold();
    try {
      await call.result;
    } catch (thrown) {
      this.#connection.release();
      throw thrown;
    }
  }

  async thaw({ epoch, ...options }: CallOptions & { readonly epoch?: number | undefined } = {}): Promise<void> {
    let call: AgentCall<"system.thaw"> | undefined;
    this.#connection.bypass(() => {
      call = this.begin("system.thaw", { epoch }, options);
    });
    try {
      await call?.result;
    } finally {
      this.#connection.release();
    }
  }

  /** Ends connections out of the sandbox, before it is saved to continue elsewhere: the programs see that at once. */
  resetFlows(): void {
    const error = new SandboxError("canceled", { message: `${this.label} is being saved, which ends its connections` });
    this.#connection.cancelAll(["net.serve", "net.accept"], error);
  }

  exec(cmd: string, options: Omit<AgentParams<"exec">, "cmd"> = {}): Promise<AgentResult<"exec">> {
    return this.call("exec", { cmd, ...options });
  }

  execCode(lang: string, code: string): Promise<AgentResult<"exec_code">> {
    return this.call("exec_code", { lang, code });
  }

  async readFile(path: string): Promise<string> {
    return (await this.call("read_file", { path })).content;
  }

  async writeFile(path: string, content: string): Promise<void> {
    await this.call("write_file", { path, content });
  }

  async listDir(path: string): Promise<AgentResult<"list_dir">["entries"]> {
    return (await this.call("list_dir", { path })).entries;
  }
}

/** Agents of earlier generations are supported. */
function requireKnownGeneration(label: string, found: number): void {
  if (found <= PROTOCOL_GENERATION) return;
  throw new SandboxError("agent_too_new", {
    message: `the agent of ${label} speaks generation ${found} of the protocol, but this program speaks at most generation ${PROTOCOL_GENERATION}`,
    details: { found, known: PROTOCOL_GENERATION },
  });
}
