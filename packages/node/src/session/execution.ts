import type { OutputChunk, ProcessExit, ProcessHandle } from "@sandpiper/core";
import type { SessionEvent } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { statusUpdate } from "./session-event.ts";

/** Marks the processes of sessions, so that the node finds them after a restart. */
const PROCESS_PREFIX = "session-";

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
  readonly #live: LiveSandbox;
  readonly #process: string;
  readonly #started: Promise<unknown>;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #offset = 0;
  #droppedBytes = 0;
  /** Decoded output that is not sent yet. */
  #unsent: SessionEvent | undefined;
  #lastDelivery: Promise<unknown> = Promise.resolve();
  /** Whether its end has been sent to a client. */
  isDelivered = false;

  private constructor(live: LiveSandbox, process: string, started: Promise<unknown>) {
    this.#live = live;
    this.#process = process;
    this.#started = started;
    // `deliver` reports a failed start; without a listener it must not end the node.
    started.catch(() => {});
  }

  static start(live: LiveSandbox, source: { readonly language: string; readonly code: string }): Execution {
    const process = `${PROCESS_PREFIX}${crypto.randomUUID()}`;
    return new Execution(live, process, live.startCode(source, process));
  }

  /** Finds an execution of the node's previous process. Sends its output from the start: how much was sent is unknown. */
  static async find(live: LiveSandbox): Promise<Execution | undefined> {
    const newest = (await live.processes())
      .filter(({ id }) => id.startsWith(PROCESS_PREFIX))
      .toSorted((one, other) => other.startedAt.getTime() - one.startedAt.getTime())[0];
    return newest && new Execution(live, newest.id, Promise.resolve());
  }

  /** Sends a listener what the previous one has not received. Resolves to whether it was sent the end. */
  deliver(listener: ExecutionListener): Promise<boolean> {
    const delivery = this.#lastDelivery.then(() => this.#deliver(listener));
    this.#lastDelivery = delivery.catch(() => {});
    return delivery;
  }

  /** Lets the agent drop the process and its journal. */
  async forget(): Promise<void> {
    const process = await this.#live.attach(this.#process, 0);
    await process.forget();
  }

  async #deliver(listener: ExecutionListener): Promise<boolean> {
    await this.#started;
    if (!(await listener.send(statusUpdate("SANDBOX_EXECUTION_RUNNING")))) return false;
    if (!(await this.#sendUnsent(listener))) return false;
    const process = await this.#live.attach(this.#process, this.#offset);
    listener.signal.addEventListener("abort", () => process.detach(), { once: true });
    if (!(await this.#sendOutput(process, listener))) return false;
    const exit = await process.wait();
    const message = this.#remark(exit);
    const done = { ...(message === "" ? {} : { message }), exit_code: exit.exitCode };
    this.isDelivered = await listener.send(statusUpdate("SANDBOX_EXECUTION_DONE", done));
    return this.isDelivered;
  }

  async #sendOutput(process: ProcessHandle, listener: ExecutionListener): Promise<boolean> {
    for await (const chunk of process.output) {
      this.#live.touch("output");
      this.#offset = chunk.offset + chunk.bytes.length;
      this.#droppedBytes += chunk.dropped;
      if (!(await this.#sendText(chunk.source, chunk.bytes, listener))) return false;
    }
    if (listener.signal.aborted) return false;
    // Flushes the decoders: the output may end within a character.
    return (
      (await this.#sendText("stdout", undefined, listener)) && (await this.#sendText("stderr", undefined, listener))
    );
  }

  /** A character may be split between two chunks. */
  #sendText(source: OutputChunk["source"], bytes: Uint8Array | undefined, listener: ExecutionListener) {
    const event = source === "stderr" ? "stderr" : "stdout";
    const data = this.#decoders[event].decode(bytes, { stream: bytes !== undefined });
    if (data !== "") this.#unsent = { event, data };
    return this.#sendUnsent(listener);
  }

  async #sendUnsent(listener: ExecutionListener): Promise<boolean> {
    if (this.#unsent === undefined) return true;
    if (!(await listener.send(this.#unsent))) return false;
    this.#unsent = undefined;
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
