import type { OutputChunk, ProcessExit, ProcessHandle } from "@sandpiper/core";
import type { SessionEvent } from "@sandpiper/protocol";
import type { LiveSandbox } from "../sandboxes/live-sandbox.ts";
import { statusUpdate } from "./session-event.ts";

/** Marks the processes of sessions, so that a node finds them again after a restart. */
const PROCESS_PREFIX = "session-";

export interface ExecutionListener {
  /** Answers whether it has left this process. */
  send(event: SessionEvent): Promise<boolean>;
  /** Aborted when the listener has gone. */
  readonly signal: AbortSignal;
}

/**
 * Code that a session runs. It goes on when its client leaves; what the client has not been sent by then goes to the next
 * one. Until somebody listens its output stays in the process's journal.
 */
export class Execution {
  readonly #live: LiveSandbox;
  readonly #process: string;
  readonly #started: Promise<unknown>;
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  #offset = 0;
  #droppedBytes = 0;
  /** Decoded, and not sent yet. */
  #unsent: SessionEvent | undefined;
  #lastTurn: Promise<unknown> = Promise.resolve();
  /** Its end has been sent to somebody. */
  isTold = false;

  private constructor(live: LiveSandbox, process: string, started: Promise<unknown>) {
    this.#live = live;
    this.#process = process;
    this.#started = started;
    // Each listener learns of a failed start; without any it must not end the node.
    started.catch(() => {});
  }

  static start(live: LiveSandbox, source: { readonly language: string; readonly code: string }): Execution {
    const process = `${PROCESS_PREFIX}${crypto.randomUUID()}`;
    return new Execution(live, process, live.startCode(source, process));
  }

  /** The one whose end nobody was told before the node was restarted. What was sent of it is not known: it begins anew. */
  static async find(live: LiveSandbox): Promise<Execution | undefined> {
    const untold = (await live.processes())
      .filter(({ id }) => id.startsWith(PROCESS_PREFIX))
      .toSorted((one, other) => other.startedAt.getTime() - one.startedAt.getTime())[0];
    return untold && new Execution(live, untold.id, Promise.resolve());
  }

  /** Tells a listener everything from where the last one was left; true once it has been told the end. */
  deliver(listener: ExecutionListener): Promise<boolean> {
    const turn = this.#lastTurn.then(() => this.#deliver(listener));
    this.#lastTurn = turn.catch(() => {});
    return turn;
  }

  /** Its end has arrived: the agent need not keep it. */
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
    this.isTold = await listener.send(statusUpdate("SANDBOX_EXECUTION_DONE", done));
    return this.isTold;
  }

  async #sendOutput(process: ProcessHandle, listener: ExecutionListener): Promise<boolean> {
    for await (const chunk of process.output) {
      this.#live.touch("output");
      this.#offset = chunk.offset + chunk.bytes.length;
      this.#droppedBytes += chunk.dropped;
      if (!(await this.#sendText(chunk.source, chunk.bytes, listener))) return false;
    }
    if (listener.signal.aborted) return false;
    // What is left of a character that was never finished.
    return (
      (await this.#sendText("stdout", undefined, listener)) && (await this.#sendText("stderr", undefined, listener))
    );
  }

  /** A character may begin in one chunk and end in another. */
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
      ...(timedOut ? ["its time limit passed, so it was killed"] : []),
      ...(outOfMemory ? ["it used more memory than there is, so it was killed"] : []),
      ...(signal !== null && !timedOut && !outOfMemory ? [`${signal} ended it`] : []),
      ...(this.#droppedBytes > 0 ? [`${this.#droppedBytes} bytes of output were dropped while nobody read them`] : []),
    ].join("; ");
  }
}
