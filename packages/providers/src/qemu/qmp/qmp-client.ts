import type { Socket } from "node:net";
import { SandboxError } from "@sandpiper/core";
import { connectSocket } from "../../host/unix-socket.ts";
import { unlessAborted } from "../../host/unless-aborted.ts";
import type { QmpAnswer, QmpArguments, QmpCommand, QmpEvent } from "./qmp-commands.ts";

/** QEMU's longest answers have some kilobytes. */
const MAX_LINE_CHARACTERS = 1024 * 1024;

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

/** A client of one QEMU's monitor. QEMU never closes the connection, so its end means that QEMU has ended. */
export class QmpClient {
  /** Resolves when the connection has ended, from either side. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Set<(event: QmpEvent) => void>();
  readonly #greeted = Promise.withResolvers<void>();
  #nextId = 1;
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#greeted.promise.catch(() => {});
    const lines = new LineSplitter(
      (line) => this.#receive(line),
      () => this.close(),
    );
    socket.on("data", (chunk: Uint8Array) => lines.push(chunk));
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#end();
        resolve();
      });
    });
  }

  /** Waits until QEMU answers. It greets long before that, so `first` sends its commands right after the greeting. */
  static async connect(
    path: string,
    signal: AbortSignal,
    first: (client: QmpClient) => Promise<unknown> = async () => {},
  ): Promise<QmpClient> {
    const client = new QmpClient(await connectSocket(path, signal));
    try {
      await unlessAborted(() => client.#greeted.promise, signal);
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

  /** Calls the listener for each event until the returned function is called. */
  onEvent(listener: (event: QmpEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whether the open connection keeps this program from exiting. */
  set isHeld(isHeld: boolean) {
    if (isHeld) this.#socket.ref();
    else this.#socket.unref();
  }

  /** QEMU keeps running and accepts the next client. */
  close(): void {
    this.#socket.destroy();
  }

  #receive(line: string): void {
    const message = parseMessage(line);
    if (message === undefined) this.close();
    else if (message.QMP !== undefined) this.#greeted.resolve();
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
    this.#greeted.reject(monitorGone("the greeting"));
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
  return new SandboxError("monitor_gone", {
    message: `QEMU's monitor did not answer ${command}: the connection ended`,
    hint: "the virtual machine has ended: create a new sandbox",
  });
}

function monitorRefused(command: string, why: string): SandboxError {
  return new SandboxError("monitor_refused", {
    message: `QEMU refused ${command}: ${why}`,
    hint: "run `sandpiper doctor`; if it finds no problem, report this as a bug",
  });
}

/** Joins the pieces of a byte stream into lines. A line that is too long ends the stream: its sender is compromised. */
export class LineSplitter {
  readonly #receive: (line: string) => void;
  readonly #onTooLong: () => void;
  readonly #decoder = new TextDecoder();
  #rest = "";
  #hasEnded = false;

  constructor(receive: (line: string) => void, onTooLong: () => void) {
    this.#receive = receive;
    this.#onTooLong = onTooLong;
  }

  push(chunk: Uint8Array): void {
    if (this.#hasEnded) return;
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_LINE_CHARACTERS) {
      this.#hasEnded = true;
      this.#rest = "";
      this.#onTooLong();
    }
    for (const line of lines) if (line.trim() !== "") this.#receive(line);
  }
}
