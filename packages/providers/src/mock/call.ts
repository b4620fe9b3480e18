import { SandboxError } from "@sandpiper/core";
import type { CallId } from "@sandpiper/protocol";
import { Notifier } from "./notifier.ts";

/** Small, like an agent's own limit, so that the sender has to wait for credit. */
const UPLOAD_WINDOW_BYTES = 512 * 1024;
const DATA_BYTES = 64 * 1024;

export interface MockRequest {
  readonly id: CallId;
  readonly method: string;
  readonly params: unknown;
  readonly attachment: Uint8Array;
}

/** One call, from the agent's side. */
export class MockCall {
  readonly request: MockRequest;
  readonly canceled = new AbortController();
  readonly #send: (message: object, attachment?: Uint8Array) => void;
  readonly #changed = new Notifier();
  readonly #received: Uint8Array[] = [];
  #credit = 0;
  #hasEnded = false;

  constructor(request: MockRequest, send: (message: object, attachment?: Uint8Array) => void) {
    this.request = request;
    this.#send = send;
  }

  /** The caller grants more credit. */
  grant(bytes: number): void {
    this.#credit += bytes;
    this.#changed.notify();
  }

  receive(bytes: Uint8Array): void {
    this.#received.push(bytes);
    this.#changed.notify();
  }

  ended(): void {
    this.#hasEnded = true;
    this.#changed.notify();
  }

  cancel(): void {
    this.canceled.abort();
    this.#changed.notify();
  }

  /** Waits for credit and returns how much there is. */
  async room(): Promise<number> {
    while (this.#credit === 0) await this.wait(this.#changed);
    return Math.min(this.#credit, DATA_BYTES);
  }

  sendData(bytes: Uint8Array, fields: object = {}): void {
    this.#credit -= bytes.length;
    this.#send({ jsonrpc: "2.0", method: "stream.data", params: { call: this.request.id, ...fields } }, bytes);
  }

  async sendAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; ) {
      const size = await this.room();
      this.sendData(bytes.subarray(at, at + size));
      at += size;
    }
  }

  /** Lines are never split, so a line waits until it has enough credit. */
  async sendLine(value: object): Promise<void> {
    const line = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
    while (this.#credit < line.length) await this.wait(this.#changed);
    this.sendData(line);
  }

  sendEnd(): void {
    this.#send({ jsonrpc: "2.0", method: "stream.end", params: { call: this.request.id } });
  }

  /** The caller's stream, which grants credit as it is consumed. */
  async *uploads(): AsyncGenerator<Uint8Array, void, undefined> {
    this.#grantCaller(UPLOAD_WINDOW_BYTES);
    for (;;) {
      const bytes = this.#received.shift();
      if (bytes !== undefined) {
        this.#grantCaller(bytes.length);
        yield bytes;
      } else if (this.#hasEnded) return;
      else await this.wait(this.#changed);
    }
  }

  /** Waits for a change; throws when the call was canceled. */
  async wait(notifier: Notifier): Promise<void> {
    if (!this.canceled.signal.aborted) {
      await new Promise<void>((resolve) => {
        this.canceled.signal.addEventListener("abort", () => resolve(), { once: true });
        notifier.wait().then(resolve);
      });
    }
    if (this.canceled.signal.aborted) {
      throw new SandboxError("canceled", { message: `${this.request.method} was canceled` });
    }
  }

  #grantCaller(bytes: number): void {
    this.#send({ jsonrpc: "2.0", method: "stream.credit", params: { call: this.request.id, bytes } });
  }
}
