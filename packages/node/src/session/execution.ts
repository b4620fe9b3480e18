import { type OutputChunk, type ProcessExit, type ProcessHandle, SandboxError } from "@sandpiper/core";
import { executionOfProcess, executionProcess, type SessionEvent } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { formatCursor } from "./output-cursor.ts";
import { type OutputPosition, type ReadText, readChunk, readEnd, START } from "./output-position.ts";
import { statusUpdate } from "./session-event.ts";

/** A client on a bad network must get at least one event between two losses of its connection. */
const MAX_EVENT_BYTES = 32 * 1024;

/** Code that a client sent. */
export interface CodeRequest {
  readonly language: string;
  readonly code: string;
  /** Chosen by the client; random otherwise. */
  readonly execution?: string | undefined;
}

export interface ExecutionListener {
  /** Resolves to whether the event was handed to the operating system. */
  send(event: SessionEvent): Promise<boolean>;
  /** Aborted when the listener has gone. */
  readonly signal: AbortSignal;
}

/**
 * Code that a session runs. It keeps running when its client leaves, and the next client gets the rest of the output.
 * In between, the output stays in the process's journal.
 */
export class Execution {
  readonly id: string;
  readonly #live: LiveSandbox;
  readonly #started: Promise<unknown>;
  #position: OutputPosition = START;
  #droppedBytes = 0;
  #lastDelivery: Promise<unknown> = Promise.resolve();
  /** Whether its end has been sent to a client. */
  isDelivered = false;

  private constructor(live: LiveSandbox, id: string, started: Promise<unknown>) {
    this.id = id;
    this.#live = live;
    this.#started = started;
    // `deliver` reports a failed start; without a listener it must not end the node.
    started.catch(() => {});
  }

  static start(live: LiveSandbox, { execution = crypto.randomUUID(), ...source }: CodeRequest): Execution {
    return new Execution(live, execution, startOnce(live, source, executionProcess(execution)));
  }

  /** Finds an execution of the node's previous process. Sends its output from the start: how much was sent is unknown. */
  static async find(live: LiveSandbox): Promise<Execution | undefined> {
    const newest = (await live.processes())
      .filter(({ id }) => executionOfProcess(id) !== undefined)
      .toSorted((one, other) => other.startedAt.getTime() - one.startedAt.getTime())[0];
    return newest && new Execution(live, executionOfProcess(newest.id) as string, Promise.resolve());
  }

  /** Whether its output reaches as far as a position that a client claims to have. */
  async reaches({ offset }: OutputPosition): Promise<boolean> {
    if (offset === 0) return true;
    await this.#started;
    return (await this.#live.process(this.#process)).endOffset >= offset;
  }

  /** False if it may still run. */
  async hasEnded(): Promise<boolean> {
    try {
      await this.#started;
      return !(await this.#live.process(this.#process)).isRunning;
    } catch {
      return false;
    }
  }

  /** Sends a listener what follows `from`, or what earlier ones have not received. Resolves to whether the end was sent. */
  deliver(listener: ExecutionListener, from?: OutputPosition): Promise<boolean> {
    const delivery = this.#lastDelivery.then(() => {
      if (from !== undefined) [this.#position, this.#droppedBytes] = [from, 0];
      return this.#deliver(listener);
    });
    this.#lastDelivery = delivery.catch(() => {});
    return delivery;
  }

  /** Lets the agent drop the process and its journal. */
  async forget(): Promise<void> {
    const process = await this.#live.attach(this.#process, 0);
    await process.forget();
  }

  get #process(): string {
    return executionProcess(this.id);
  }

  async #deliver(listener: ExecutionListener): Promise<boolean> {
    await this.#started;
    const execution = this.id;
    const { offset } = this.#position;
    if (!(await listener.send(statusUpdate("SANDBOX_EXECUTION_RUNNING", { execution, offset })))) return false;
    const process = await this.#live.attach(this.#process, offset);
    listener.signal.addEventListener("abort", () => process.detach(), { once: true });
    if (!(await this.#sendOutput(process, listener))) return false;
    const exit = await process.wait();
    const message = this.#remark(exit);
    const end = { execution, offset: this.#position.offset, exit_code: exit.exitCode };
    const done = { ...(message === "" ? {} : { message }), ...end };
    this.isDelivered = await listener.send(statusUpdate("SANDBOX_EXECUTION_DONE", done));
    return this.isDelivered;
  }

  async #sendOutput(process: ProcessHandle, listener: ExecutionListener): Promise<boolean> {
    for await (const chunk of process.output) {
      this.#live.touch("output");
      this.#droppedBytes += chunk.dropped;
      for (const slice of slices(chunk)) {
        if (!(await this.#sendText(readChunk(this.#position, slice), listener))) return false;
      }
    }
    // The output may end within a character.
    return !listener.signal.aborted && (await this.#sendText(readEnd(this.#position), listener));
  }

  /** Moves on only with what was sent, so that the next listener gets the rest. */
  async #sendText({ pieces, position }: ReadText, listener: ExecutionListener): Promise<boolean> {
    const { rollbacks } = this.#live.record;
    for (const { source, text, offset, dropped, after } of pieces) {
      const next = formatCursor(after, rollbacks);
      const event = { event: source, data: text, execution: this.id, offset, next } as const;
      if (!(await listener.send(dropped === 0 ? event : { ...event, dropped }))) return false;
      this.#position = after;
    }
    this.#position = position;
    return true;
  }

  #remark({ timedOut, outOfMemory, signal }: ProcessExit): string {
    return [
      ...(timedOut ? ["killed at its time limit"] : []),
      ...(outOfMemory ? ["killed because the sandbox ran out of memory"] : []),
      ...(signal !== null && !timedOut && !outOfMemory ? [`ended by ${signal}`] : []),
      ...(this.#droppedBytes > 0
        ? [`${this.#droppedBytes} bytes of output were dropped while no client read them`]
        : []),
    ].join("; ");
  }
}

function* slices(chunk: OutputChunk): Generator<OutputChunk, void, undefined> {
  for (let at = 0; at < chunk.bytes.length; at += MAX_EVENT_BYTES) {
    const bytes = chunk.bytes.subarray(at, at + MAX_EVENT_BYTES);
    yield { source: chunk.source, bytes, offset: chunk.offset + at, dropped: at === 0 ? chunk.dropped : 0 };
  }
}

/** A client that does not know whether its request arrived sends it again, with the same id. */
async function startOnce(live: LiveSandbox, source: Omit<CodeRequest, "execution">, process: string): Promise<void> {
  try {
    await live.startCode(source, process);
  } catch (thrown) {
    if (SandboxError.from(thrown).code !== "already_exists") throw thrown;
  }
}
