import type { Socket } from "node:net";
import { SandboxError } from "@sandpiper/core";
import { connectSocket } from "../../host/unix-socket.ts";
import { LineSplitter } from "./line-splitter.ts";
import type { QmpAnswer, QmpArguments, QmpCommand, QmpEvent } from "./qmp-commands.ts";

interface Waiting {
  readonly command: string;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: SandboxError) => void;
}

interface QmpMessage extends Partial<QmpEvent> {
  readonly QMP?: unknown;
  readonly id?: number;
  readonly return?: unknown;
  readonly error?: { readonly class: string; readonly desc: string };
}

/** Speaks to the monitor of one QEMU. The end of its connection is the end of QEMU: nothing else closes it. */
export class QmpClient {
  /** Resolves when the connection has ended, whoever ended it. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  #nextId = 1;
  #isClosed = false;
  #greet!: () => void;

  private constructor(socket: Socket) {
    this.#socket = socket;
    const lines = new LineSplitter((line) => this.#receive(line));
    socket.on("data", (chunk: Uint8Array) => lines.push(chunk));
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#end();
        resolve();
      });
    });
  }

  /**
   * Waits for QEMU's greeting, and until it answers. It greets long before it does: what it is told `first` is said meanwhile.
   */
  static async connect(
    path: string,
    signal: AbortSignal,
    first: (client: QmpClient) => Promise<unknown> = async () => {},
  ): Promise<QmpClient> {
    const client = new QmpClient(await connectSocket(path, signal));
    try {
      await client.#greeted(signal);
      await Promise.all([client.execute("qmp_capabilities", {}), first(client)]);
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  execute<C extends QmpCommand>(command: C, given: QmpArguments<C>): Promise<QmpAnswer<C>> {
    if (this.#isClosed) return Promise.reject(monitorGone(command));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { command, resolve: (answer) => resolve(answer as QmpAnswer<C>), reject });
      this.#socket.write(`${JSON.stringify({ execute: command, arguments: given, id })}\n`);
    });
  }

  /** Tells of every event until the returned function is called. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whether an open monitor keeps this program from ending. */
  set isHeld(isHeld: boolean) {
    if (isHeld) this.#socket.ref();
    else this.#socket.unref();
  }

  /** QEMU goes on, and takes the next caller. */
  close(): void {
    this.#socket.destroy();
  }

  #greeted(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      this.#greet = () => {
        signal.removeEventListener("abort", abort);
        resolve();
      };
      this.closed.then(() => reject(monitorGone("the greeting")));
    });
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    if (message === undefined) this.close();
    else if (message.QMP !== undefined) this.#greet();
    else if (message.event !== undefined) this.#tell({ event: message.event, data: message.data ?? {} });
    else this.#answer(message);
  }

  #tell(event: QmpEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  #answer({ id = 0, error, ...message }: QmpMessage): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(message.return);
    else waiting?.reject(monitorRefused(waiting.command, error.desc));
  }

  #end(): void {
    this.#isClosed = true;
    for (const { command, reject } of this.#waiting.values()) reject(monitorGone(command));
    this.#waiting.clear();
  }
}

function parseMessage(line: string): QmpMessage | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function monitorGone(command: string): SandboxError {
  return new SandboxError("unavailable", {
    reason: "monitor_gone",
    message: `QEMU's monitor did not answer ${command}: its connection has ended`,
    hint: "the virtual machine has ended; create a new one",
  });
}

function monitorRefused(command: string, why: string): SandboxError {
  return new SandboxError("internal", {
    reason: "monitor_refused",
    message: `QEMU refused ${command}: ${why}`,
    hint: "run `sandpiper doctor`; if it finds nothing, please report this",
  });
}
