import { type AgentMethod, type AgentResult, agentMethods, type CallId, SandboxError } from "@sandpiper/protocol";
import type { AgentConnection, PendingCall } from "./agent-connection.ts";
import { invalidAnswer } from "./agent-error.ts";
import type { Inbound } from "./inbound-stream.ts";
import type { OutboundStream } from "./outbound-stream.ts";

/** One call from its request to its answer, with its streams if it has any. */
export class AgentCall<M extends AgentMethod> implements PendingCall {
  readonly id: CallId;
  readonly method: M;
  readonly #outcome = Promise.withResolvers<AgentResult<M>>();
  readonly result = this.#outcome.promise;
  /** Set before the request is sent. */
  inbound: Inbound | undefined;
  outbound: OutboundStream | undefined;
  /** The final offset in the answer, if the method has one. */
  endOffset: ((result: AgentResult<M>) => number) | undefined;
  readonly #connection: AgentConnection;
  readonly #settled: (() => void)[] = [];
  #isOpen = true;

  constructor(connection: AgentConnection, id: CallId, method: M) {
    this.#connection = connection;
    this.id = id;
    this.method = method;
    // Streams report the failure themselves; an unawaited call must not end the program.
    this.result.catch(() => {});
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Runs once, when the call is answered, fails or is canceled. */
  onSettled(callback: () => void): void {
    this.#settled.push(callback);
  }

  answer(result: unknown): void {
    const parsed = agentMethods[this.method].result.safeParse(result);
    if (!parsed.success) {
      this.fail(invalidAnswer(this.method, parsed.error.issues[0]?.message ?? "it has the wrong shape"));
      return;
    }
    const value = parsed.data as AgentResult<M>;
    if (this.inbound !== undefined && this.endOffset !== undefined) {
      const missing = this.endOffset(value) - this.inbound.flow.position;
      if (missing > 0) {
        this.fail(lostBytes(this.method, missing));
        return;
      }
    }
    if (!this.#settle()) return;
    this.inbound?.finish();
    this.outbound?.fail(streamClosed(this.method));
    this.#outcome.resolve(value);
  }

  fail(error: SandboxError): void {
    if (!this.#settle()) return;
    this.inbound?.fail(error);
    this.outbound?.fail(error);
    this.#outcome.reject(error);
  }

  /** Ends the call on both sides; later messages about it are dropped. */
  cancel(error: SandboxError): void {
    if (!this.#isOpen) return;
    this.#connection.send({ jsonrpc: "2.0", method: "cancel", params: { call: this.id } });
    this.fail(error);
  }

  place(size: number): Uint8Array | undefined {
    return this.inbound?.place?.(size);
  }

  data(params: Readonly<Record<string, unknown>>, bytes: Uint8Array): void {
    if (this.inbound === undefined) {
      this.#connection.close(unexpectedData(this.method));
      return;
    }
    const accepted = this.inbound.flow.accept(params, bytes);
    if (!(accepted instanceof SandboxError)) this.inbound.chunk(accepted);
    else if (accepted.reason === "agent_window_exceeded") this.#connection.close(accepted);
    else this.cancel(accepted);
  }

  end(): void {
    this.inbound?.ended();
  }

  credit(bytes: number): void {
    this.outbound?.grant(bytes);
  }

  /** Lets the agent send that much more. */
  grant(bytes: number): void {
    this.#connection.send({ jsonrpc: "2.0", method: "stream.credit", params: { call: this.id, bytes } });
  }

  /** Returns a promise when the sender should wait before it sends more. */
  sendData(bytes: Uint8Array): Promise<void> | undefined {
    this.#connection.send({ jsonrpc: "2.0", method: "stream.data", params: { call: this.id } }, bytes);
    return this.#connection.flush();
  }

  sendEnd(): void {
    this.#connection.send({ jsonrpc: "2.0", method: "stream.end", params: { call: this.id } });
  }

  #settle(): boolean {
    if (!this.#isOpen) return false;
    this.#isOpen = false;
    this.#connection.remove(this.id);
    for (const callback of this.#settled) callback();
    return true;
  }
}

function lostBytes(method: string, missing: number): SandboxError {
  return new SandboxError("stream_cut", {
    message: `${method}: the last ${missing} bytes did not arrive`,
    details: { missing },
  });
}

function streamClosed(method: string): SandboxError {
  return new SandboxError("stream_closed", { message: `${method} has ended; nothing more can be sent` });
}

function unexpectedData(method: string): SandboxError {
  return new SandboxError("agent_window_exceeded", {
    message: `the agent sent bytes for ${method}, which takes none, so its channel was closed`,
  });
}
