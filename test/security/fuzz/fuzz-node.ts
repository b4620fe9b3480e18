import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NodeConfigOptions } from "@sandpiper/node/server";
import { Client } from "@sandpiper/sdk";
import type { Holdings } from "./fuzz-node-program.ts";

interface Started {
  readonly url: string;
  readonly apiKey: string;
}

/** A node in its own process, with simulated sandboxes and no rate limits, so that every input reaches its reader. */
export class FuzzNode implements AsyncDisposable {
  readonly client: Client;
  readonly url: string;
  readonly port: number;
  readonly apiKey: string;
  readonly #child: ChildProcess;
  readonly #home: string;
  #log = "";

  private constructor(child: ChildProcess, home: string, { url, apiKey }: Started) {
    this.#child = child;
    this.#home = home;
    this.url = url;
    this.port = Number(new URL(url).port);
    this.apiKey = apiKey;
    this.client = new Client({ url, apiKey });
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (this.#log += text));
  }

  static async start(): Promise<FuzzNode> {
    const home = mkdtempSync(join(tmpdir(), "sandpiper-fuzz-"));
    const config: NodeConfigOptions = {
      home,
      port: 0,
      logLevel: "error",
      bodyTimeoutMs: 2000,
      stopGraceMs: 100,
      maxRecordBytes: 1024 * 1024,
      rateLimits: { perKey: 0, perAddress: 0, failedCreatesPerMinute: 0 },
    };
    const program = fileURLToPath(new URL("fuzz-node-program.ts", import.meta.url));
    const child = fork(program, [JSON.stringify(config)], { silent: true });
    const [started] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`the node did not start: exit code ${code}`))),
    ]);
    return new FuzzNode(child, home, started as Started);
  }

  /** Throws if the node has ended, or has logged an error: it expects every failure that a caller can cause. */
  requireSound(): void {
    const log = this.#log;
    this.#log = "";
    if (!this.isAlive) throw new Error(`the node has ended: ${log}`);
    if (log !== "") throw new Error(`the node logged ${log}`);
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async holdings(): Promise<Holdings> {
    const answer = once(this.#child, "message");
    this.#child.send("measure");
    return (await answer)[0] as Holdings;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    if (this.isAlive) {
      const exited = once(this.#child, "exit");
      this.#child.kill("SIGTERM");
      await exited;
    }
    rmSync(this.#home, { recursive: true, force: true });
  }
}
