import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "@sandpiper/sdk";
import { run } from "../../bench/run.ts";
import { systemEnv } from "./namespaces.ts";
import type { Host } from "./network.ts";

const daemon = fileURLToPath(new URL("../../packages/node/src/daemon/main.ts", import.meta.url));
const KEPT_LINES = 2000;

export interface ClusterNodeOptions {
  readonly host: Host;
  /** The host's address by default. */
  readonly listenOn?: string | undefined;
  readonly port: number;
  readonly homeDir: string;
  /** The address that the test uses. */
  readonly url: string;
  /** Further settings. */
  readonly env: NodeJS.ProcessEnv;
}

/** A node's daemon in its own network namespace; a test can kill, freeze and restart it. */
export class ClusterNode {
  readonly url: string;
  readonly homeDir: string;
  readonly #options: ClusterNodeOptions;
  readonly #log: string[] = [];
  #child: ChildProcess | undefined;

  constructor(options: ClusterNodeOptions) {
    this.#options = options;
    this.url = options.url;
    this.homeDir = options.homeDir;
  }

  /** The last lines of its standard output and error, over all its starts. */
  get log(): readonly string[] {
    return this.#log;
  }

  get pid(): number {
    if (this.#child?.pid === undefined) throw new Error("the node has not been started");
    return this.#child.pid;
  }

  /** The suffix of its instances' cgroup names. */
  get place(): string {
    return createHash("sha256").update(join(this.homeDir, "node")).digest("hex").slice(0, 8);
  }

  /** The key that its first start created. */
  get apiKey(): string {
    return readFileSync(join(this.homeDir, "api-key"), "utf8").trim();
  }

  /** A client of this node alone, without the load balancer. */
  client(apiKey: string = this.apiKey): Client {
    return new Client({ url: this.url, apiKey });
  }

  /** Starts the daemon with the same home and waits until it is ready. */
  async start(): Promise<void> {
    const { host, listenOn = host.address, port, homeDir, env } = this.#options;
    const settings = ["--home", homeDir, "--host", listenOn, "--port", String(port), "--allow-insecure"];
    const [program, ...args] = host.enter([process.execPath, daemon, ...settings]);
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...systemEnv, SANDPIPER_LOG_FORMAT: "json", ...env },
    });
    this.#child = child;
    createInterface({ input: child.stderr }).on("line", (line) => this.#keep(line));
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout }).on("line", (line) => {
        this.#keep(line);
        if (line.includes('"msg":"ready"')) resolve();
      });
      child.once("close", (code, signal) =>
        reject(
          new Error(`the node ended before it was ready (${signal ?? code}):\n${this.#log.slice(-20).join("\n")}`),
        ),
      );
    });
  }

  /** Runs a program in the node's namespace and environment, and returns its output. */
  async runInside(argv: readonly string[]): Promise<string> {
    const { host, env } = this.#options;
    const [program, ...args] = host.enter(argv);
    return (await run(program, args, { env: { ...systemEnv, ...env } })).stdout;
  }

  /** Sends SIGKILL: the node cannot clean up. */
  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Sends SIGTERM and returns the exit code. */
  terminate(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** Stops the process, like a paused machine, until `thaw`. */
  freeze(): void {
    this.#child?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child?.kill("SIGCONT");
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill(signal);
      await exited;
    }
    return child.exitCode;
  }

  #keep(line: string): void {
    this.#log.push(line);
    if (this.#log.length > KEPT_LINES) this.#log.shift();
  }
}
