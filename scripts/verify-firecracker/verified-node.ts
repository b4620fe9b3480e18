import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, type Sandbox } from "@sandpiper/sdk";
import type { VerifyOptions } from "./arguments.ts";

const daemon = join(import.meta.dirname, "../../packages/node/src/daemon/main.ts");
const MEMORY_MIB = 192;
const KEPT_LINES = 20;

/** A node in a temporary directory whose only provider is the Firecracker under test. */
export class VerifiedNode implements AsyncDisposable {
  readonly home: string;
  /** The sandboxes of the steps, by name. */
  readonly sandboxes = new Map<string, Sandbox>();
  readonly #options: VerifyOptions;
  readonly #log: string[] = [];
  #child: ChildProcess | undefined;
  #client: Client | undefined;

  private constructor(home: string, options: VerifyOptions) {
    this.home = home;
    this.#options = options;
  }

  /** The short path leaves room for the names of sockets. */
  static async create(options: VerifyOptions): Promise<VerifiedNode> {
    return new VerifiedNode(await mkdtemp(join(tmpdir(), "vf-")), options);
  }

  get client(): Client {
    if (this.#client === undefined) throw new Error("the node does not run");
    return this.#client;
  }

  async start(): Promise<void> {
    const { firecracker, kernel, bootTimeoutMs } = this.#options;
    const timeout = String(bootTimeoutMs);
    const child = spawn(
      process.execPath,
      [
        ...[daemon, "--home", this.home, "--port", "0", "--log-format", "json"],
        ...["--default-provider", "firecracker", "--connect-timeout-ms", timeout],
        ...["--firecracker-boot-timeout-ms", timeout],
        ...(kernel === undefined ? [] : ["--firecracker-kernel", kernel]),
      ],
      { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, SANDPIPER_FIRECRACKER: firecracker } },
    );
    this.#child = child;
    createInterface({ input: child.stderr }).on("line", (line) => this.#keep(line));
    const { promise: ready, resolve, reject } = Promise.withResolvers<string>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.#keep(line);
      const entry = line.startsWith("{") ? JSON.parse(line) : {};
      if (entry.msg === "ready") resolve(entry.url);
    });
    child.once("close", (code, signal) => {
      reject(new Error(`the node ended before it was ready (${signal ?? code}):\n${this.#log.join("\n")}`));
    });
    const apiKey = async () => (await readFile(join(this.home, "api-key"), "utf8")).trim();
    this.#client = new Client({ url: await ready, apiKey: await apiKey() });
  }

  async kill9(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Creates a sandbox that later steps find by its name. */
  async create(name: string): Promise<Sandbox> {
    const sandbox = await this.client.sandboxes.create({ memoryMib: MEMORY_MIB, diskMib: 64 });
    this.sandboxes.set(name, sandbox);
    return sandbox;
  }

  /** A handle of an earlier sandbox on the node that runs now. */
  async find(name: string): Promise<Sandbox> {
    const { id } = this.sandboxes.get(name) ?? {};
    if (id === undefined) throw new Error(`the sandbox of an earlier step is missing: ${name}`);
    return await this.client.sandboxes.connect(id);
  }

  machineFile(id: string, name: string): string {
    return join(this.home, "node/firecracker/instances", id, "machine", name);
  }

  /** The host's facts that a reader of the report needs. */
  async describe(): Promise<Record<string, string>> {
    const { firecracker, kernel, bootTimeoutMs } = this.#options;
    return {
      firecracker: `${firecracker}, ${await versionOf(firecracker)}`,
      kernel: kernel ?? "the one that set-up downloads",
      "boot timeout": `${bootTimeoutMs / 1000} s`,
      host: `Linux ${release()}, ${cpus()[0]?.model ?? "unknown processor"}, ${cpus().length} processors`,
      "node.js": process.version,
    };
  }

  /** Ends the node and removes its machines. */
  async [Symbol.asyncDispose](): Promise<void> {
    // Started again if a step left it dead, because only a node removes its machines.
    if (this.#child !== undefined && !this.#isAlive()) await this.start().catch(() => {});
    for await (const sandbox of this.#client?.sandboxes.list() ?? []) await sandbox.destroy().catch(() => {});
    await this.#end("SIGTERM");
    await rm(this.home, { recursive: true, force: true });
  }

  #isAlive(): boolean {
    return this.#child?.exitCode === null && this.#child.signalCode === null;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child === undefined || !this.#isAlive()) return;
    // Its connection would look for the node for a minute.
    await this.#client?.[Symbol.asyncDispose]();
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }

  #keep(line: string): void {
    this.#log.push(line);
    if (this.#log.length > KEPT_LINES) this.#log.shift();
  }
}

async function versionOf(program: string): Promise<string> {
  const child = spawn(program, ["--version"], { stdio: ["ignore", "pipe", "ignore"] });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) lines.push(line);
  return lines[0] ?? "unknown version";
}

/** The processes in the cgroups of an instance. */
export async function processesOf(id: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const cgroups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
      return cgroups.includes(id) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}
