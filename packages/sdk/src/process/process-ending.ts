import { type ProcessExitBody, SandboxError } from "@sandpiper/protocol";
import { createDeferred } from "../deferred.ts";
import type { SandboxLink } from "../sandbox-link.ts";

const WAIT_MS = 60_000;

/** How a process ends. Its output tells, if somebody reads that; otherwise the node is asked. */
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
    // Nobody need wait.
    this.#told.promise.catch(() => {});
  }

  tell(exit: ProcessExitBody): void {
    this.#told.resolve(exit);
    this.#isTold.abort();
  }

  /** The process of that id is not the one it was any more. */
  fail(error: SandboxError): void {
    this.#told.reject(error);
    this.#isTold.abort();
  }

  /** Its output may not be read to the end. */
  markUnread(): void {
    this.#unread.resolve();
  }

  wait(): Promise<ProcessExitBody> {
    if (this.#exit === undefined) {
      this.#exit = Promise.race([this.#told.promise, this.#unread.promise.then(() => this.#ask())]);
      // A wait that broke off may be asked for again.
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
