import { executionProcess, MAX_SOCKET_MESSAGE_BYTES, SandboxError } from "@sandpiper/protocol";
import type { HttpTransport } from "../http/http-transport.ts";
import { randomId } from "../random-id.ts";
import { errorOfEvent, type OutputEvent, type StatusEvent } from "./session-event.ts";
import { ExecutionStream, type ExecutionStreamOptions } from "./session-execution.ts";

/** For the execution's id in the message. */
const ENVELOPE_BYTES = 128;

export interface SessionExecutionsOptions {
  readonly http: () => HttpTransport;
  readonly sandbox: () => string;
  /** Called with an execution that another client has started. */
  readonly onExecution: (execution: ExecutionStream) => void;
  /** Does nothing while the client is not attached. */
  readonly send: (message: object) => void;
}

/** The executions of a session that have not ended, on one connection after another. */
export class SessionExecutions {
  readonly #options: SessionExecutionsOptions;
  readonly #open = new Map<string, ExecutionStream>();
  /** The execution that the current connection asked the node to continue. */
  #resumed: ExecutionStream | undefined;
  #isAttached = false;
  #error: SandboxError | undefined;

  constructor(options: SessionExecutionsOptions) {
    this.#options = options;
  }

  /** The one that runs, or is about to. */
  get current(): ExecutionStream | undefined {
    return [...this.#open.values()].find(({ isAbandoned }) => !isAbandoned);
  }

  /**
   * Starts code when the client is attached. One piece runs at a time. For code of an earlier client the node decides: if that
   * code has ended, and only its end is still being sent, the new code starts.
   */
  start(
    source: { readonly language: string; readonly code: string },
    { onOutput }: Pick<ExecutionStreamOptions, "onOutput"> = {},
  ): ExecutionStream {
    if (this.#error !== undefined) throw this.#error;
    requireSize(source);
    if ([...this.#open.values()].some(({ request, isAbandoned }) => request !== undefined && !isAbandoned)) {
      const message = "the code was not run: the session already runs code";
      throw new SandboxError("execution_running", { message, hint: "wait for its end" });
    }
    const execution = this.#add({ id: randomId(), source, onOutput });
    this.#sendUnsent();
    return execution;
  }

  /** Continues an execution that another program has read up to `next`. */
  adopt(id: string, next: string | undefined): ExecutionStream {
    return this.#add({ id, next });
  }

  /** The query by which the next connection continues; one that has started comes first, because it has output to lose. */
  resume(): Record<string, string> {
    const sent = [...this.#open.values()].filter(({ wasSent }) => wasSent);
    this.#resumed = sent.find(({ isStarted }) => isStarted) ?? sent[0];
    return this.#resumed === undefined ? {} : { execution: this.#resumed.id, offset: this.#resumed.received };
  }

  detached(): void {
    this.#isAttached = false;
  }

  attached(): void {
    this.#isAttached = true;
    for (const execution of this.#open.values()) {
      // The node starts an id once, so a request that may have been lost is sent again.
      if (execution !== this.#resumed && !execution.isStarted) execution.wasSent = false;
    }
    this.#sendUnsent();
  }

  output(event: OutputEvent): void {
    this.#open.get(event.execution)?.take(event);
  }

  updated(event: StatusEvent): void {
    const { status, execution: id, message } = event;
    if (id === undefined) return;
    const execution = this.#open.get(id);
    if (status === "SANDBOX_EXECUTION_RUNNING") {
      const running = execution ?? this.#add({ id });
      running.started();
      if (execution === undefined) this.#options.onExecution(running);
    } else if (status === "SANDBOX_EXECUTION_DONE") execution?.done({ exitCode: event.exit_code ?? 0, message });
    else if (status === "SANDBOX_EXECUTION_ERROR") execution?.fail(errorOfEvent(event, "unexpected"));
    else if (status === "SANDBOX_EXECUTION_NOT_FOUND" && execution !== undefined) this.#notFound(execution, event);
  }

  end(error: SandboxError): void {
    this.#error = error;
    for (const execution of [...this.#open.values()]) execution.fail(error);
  }

  /** Its request did not arrive, unless the node has confirmed the start before. */
  #notFound(execution: ExecutionStream, event: StatusEvent): void {
    if (execution.isStarted || execution.isKilled) {
      execution.fail(errorOfEvent(event, "no_such_execution"));
      return;
    }
    execution.wasSent = false;
    this.#sendUnsent();
  }

  #sendUnsent(): void {
    if (!this.#isAttached) return;
    const open = [...this.#open.values()];
    // The node refuses code while the former one is being killed.
    if (open.some(({ isAbandoned, wasSent }) => isAbandoned && wasSent)) return;
    for (const execution of open) {
      if (execution.wasSent || execution.request === undefined) continue;
      execution.wasSent = true;
      this.#options.send(execution.request);
    }
  }

  #add(options: Pick<ExecutionStreamOptions, "id" | "source" | "next" | "onOutput">): ExecutionStream {
    const execution = new ExecutionStream({
      ...options,
      kill: (id) => this.#kill(id),
      onSettled: () => {
        if (this.#open.get(execution.id) === execution) this.#open.delete(execution.id);
        this.#sendUnsent();
      },
    });
    this.#open.set(execution.id, execution);
    return execution;
  }

  async #kill(id: string): Promise<void> {
    const path = { id: this.#options.sandbox(), process: executionProcess(id) };
    const json = { signal: "SIGKILL", target: "tree" };
    try {
      await this.#options.http().empty("signalProcess", { path, json, isRepeatable: true });
    } catch (thrown) {
      // It has ended.
      if (!["not_found", "failed_precondition"].includes(SandboxError.from(thrown).code)) throw thrown;
    }
  }
}

/** The node closes a connection on which more arrives. */
function requireSize(source: object): void {
  const sizeBytes = new TextEncoder().encode(JSON.stringify(source)).length;
  const limitBytes = MAX_SOCKET_MESSAGE_BYTES - ENVELOPE_BYTES;
  if (sizeBytes <= limitBytes) return;
  throw new SandboxError("body_too_large", {
    message: `the code was not run: its message has ${sizeBytes} bytes`,
    hint: `send at most ${limitBytes} bytes; write larger code to a file of the sandbox first`,
    details: { limitBytes },
  });
}
