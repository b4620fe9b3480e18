import { type ProcessExitBody, SandboxError } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { SandboxLink } from "../sandbox-link.ts";

const WAIT_MS = 60_000;

/** The exit of a process: from its output stream if that is read, otherwise from a request to the node. */
export class ProcessEnding {
  readonly #link: SandboxLink;
  readonly #process: string;
  readonly #told = createDeferred<ProcessExitBody>();
  readonly #unread = createDeferred<void>();
  readonly #isTold = new AbortController();
  #exit: Promise<ProcessExitBody> | undefined;

  constructor(link: SandboxLink, process: string) {
    this.#link = link;
    this.#process = process;
    // There may be no caller of wait().
    this.#told.promise.catch(() => {});
  }

  tell(exit: ProcessExitBody): void {
    this.#told.resolve(exit);
    this.#isTold.abort();
  }

  /** After a rollback the id may belong to another process. */
  fail(error: SandboxError): void {
    this.#told.reject(error);
    this.#isTold.abort();
  }

  /** The output may not be read to its end. */
  markUnread(): void {
    this.#unread.resolve();
  }

  wait(): Promise<ProcessExitBody> {
    if (this.#exit === undefined) {
      this.#exit = Promise.race([this.#told.promise, this.#unread.promise.then(() => this.#ask())]);
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
        const request = { path, query: { timeoutMs: WAIT_MS }, signal: this.#isTold.signal };
        return await this.#link.http.json<ProcessExitBody>("waitForProcess", request);
      } catch (thrown) {
        if (this.#isTold.signal.aborted) return await this.#told.promise;
        if (SandboxError.from(thrown).code !== "deadline_exceeded") throw thrown;
      }
    }
  }
}
