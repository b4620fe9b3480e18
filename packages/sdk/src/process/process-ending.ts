import { type ProcessExitBody, SandboxError } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { SandboxLink } from "../sandbox-link.ts";

const WAIT_MS = 60_000;

/** The exit of a process: from its output stream if that is read, otherwise from a request to the node. */
export class ProcessEnding {
  readonly #link: SandboxLink;
  readonly #process: string;
  readonly #received = createDeferred<ProcessExitBody>();
  readonly #unread = createDeferred<void>();
  readonly #isReceived = new AbortController();
  #exit: Promise<ProcessExitBody> | undefined;

  constructor(link: SandboxLink, process: string) {
    this.#link = link;
    this.#process = process;
    // wait() may never be called.
    this.#received.promise.catch(() => {});
  }

  resolve(exit: ProcessExitBody): void {
    this.#received.resolve(exit);
    this.#isReceived.abort();
  }

  /** After a rollback the id may belong to another process. */
  fail(error: SandboxError): void {
    this.#received.reject(error);
    this.#isReceived.abort();
  }

  /** The output may not be read to its end. */
  markUnread(): void {
    this.#unread.resolve();
  }

  wait(): Promise<ProcessExitBody> {
    if (this.#exit === undefined) {
      this.#exit = Promise.race([this.#received.promise, this.#unread.promise.then(() => this.#ask())]);
      // After a failure the next wait() tries again.
      this.#exit.catch(() => {
        this.#exit = undefined;
      });
    }
    return this.#exit;
  }

  async #ask(): Promise<ProcessExitBody> {
    const path = { id: this.#link.id, process: this.#process };
    for (;;) {
      try {
        const request = { path, query: { timeoutMs: WAIT_MS }, signal: this.#isReceived.signal };
        return await this.#link.http.json<ProcessExitBody>("waitForProcess", request);
      } catch (thrown) {
        if (this.#isReceived.signal.aborted) return await this.#received.promise;
        if (SandboxError.from(thrown).code !== "deadline_exceeded") throw thrown;
      }
    }
  }
}
