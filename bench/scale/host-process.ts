import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { HostAnswer, HostRequest } from "./host-message.ts";

/** A separate host program that can be killed. */
export class HostProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static start(options: { readonly home: string; readonly truePath: string }): HostProcess {
    const program = fileURLToPath(new URL("host-program.ts", import.meta.url));
    // A separate process group: Ctrl-C reaches only the benchmark, which then ends this program.
    return new HostProcess(fork(program, [options.home, options.truePath], { detached: true }));
  }

  async ask(request: HostRequest): Promise<HostAnswer> {
    const { promise, resolve, reject } = Promise.withResolvers<HostAnswer>();
    const ended = (code: number | null, signal: string | null) =>
      reject(new Error(`the host program ended with ${signal ?? `exit code ${code}`} when asked to ${request.kind}`));
    this.#child.once("message", resolve).once("exit", ended);
    this.#child.send(request);
    try {
      const answer = await promise;
      if (answer.error !== undefined) throw new Error(`the host program could not ${request.kind}: ${answer.error}`);
      return answer;
    } finally {
      this.#child.off("message", resolve).off("exit", ended);
    }
  }

  /** Like kill -9, without a chance to clean up. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}
