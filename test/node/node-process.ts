import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import type { NodeStarted } from "./node-program.ts";

/** A node in its own process, so that a test can kill it. */
export class NodeProcess implements AsyncDisposable {
  readonly client: Client;
  readonly started: NodeStarted;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, started: NodeStarted) {
    this.#child = child;
    this.started = started;
    this.client = new Client({ url: started.url, apiKey: started.apiKey });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  static async start(config: NodeConfigOptions, env: Readonly<Record<string, string>> = {}): Promise<NodeProcess> {
    const program = fileURLToPath(new URL("node-program.ts", import.meta.url));
    const child = fork(program, [JSON.stringify(config)], { detached: true, env: { ...process.env, ...env } });
    const [message] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`the node did not start: exit code ${code}`))),
    ]);
    return new NodeProcess(child, message as NodeStarted);
  }

  /** Collects garbage, so that a measurement of the node's memory counts only what it still holds. */
  async collectGarbage(): Promise<void> {
    const collected = once(this.#child, "message");
    this.#child.send("collect");
    await collected;
  }

  /** Stops the process, like a paused machine, until `thaw`. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  /** Sends SIGKILL: the node cannot clean up. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  stop(): Promise<void> {
    return this.#end("SIGTERM");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    // A frozen process receives no signal but SIGKILL.
    this.thaw();
    await exited;
  }
}
