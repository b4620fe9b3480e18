import { createHash } from "node:crypto";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@sandpiper/sdk";
import { ClusterNode } from "../cluster/cluster-node.ts";
import { SmallDisk } from "./small-disk.ts";

const DISK_MIB = 256;
const START_MS = 90_000;
const RECONNECT_MS = 4000;

export interface ChaosNodeOptions {
  readonly name: string;
  readonly directory: string;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
}

/** A node of a cluster on one machine, with its home on a small disk that a fault can fill. */
export class ChaosNode {
  readonly name: string;
  readonly url: string;
  readonly disk: SmallDisk;
  readonly #node: ClusterNode;

  private constructor(name: string, node: ClusterNode, disk: SmallDisk) {
    this.name = name;
    this.url = node.url;
    this.disk = disk;
    this.#node = node;
  }

  static async make({ name, directory, port, env }: ChaosNodeOptions): Promise<ChaosNode> {
    const homeDir = join(directory, name);
    const disk = await SmallDisk.mount(homeDir, DISK_MIB);
    const address = "127.0.0.1";
    const host = { address, enter: (argv: readonly string[]) => argv as readonly [string, ...string[]] };
    const node = new ClusterNode({ host, port, homeDir, url: `http://${address}:${port}`, env });
    return new ChaosNode(name, node, disk);
  }

  get apiKey(): string {
    return this.#node.apiKey;
  }

  get log(): readonly string[] {
    return this.#node.log;
  }

  get home(): string {
    return this.#node.homeDir;
  }

  /** The directory of its lease guard. */
  get guardDirectory(): string {
    return join("/run/sandpiper", createHash("sha256").update(this.home).digest("hex").slice(0, 16));
  }

  /** The suffix of its instances' cgroup names. */
  get place(): string {
    return createHash("sha256").update(join(this.home, "node")).digest("hex").slice(0, 8);
  }

  client(apiKey: string): Client {
    return new Client({ url: this.url, apiKey, reconnectTimeoutMs: RECONNECT_MS });
  }

  get isRunning(): boolean {
    try {
      return process.kill(this.#node.pid, 0);
    } catch {
      return false;
    }
  }

  start(): Promise<void> {
    return this.#node.start();
  }

  /** Starts the node, with retries like a supervisor's. */
  async revive(): Promise<void> {
    const endAt = performance.now() + START_MS;
    for (;;) {
      try {
        return await this.#node.start();
      } catch (thrown) {
        if (performance.now() > endAt) throw thrown;
        await sleep(300);
      }
    }
  }

  kill9(): Promise<void> {
    return this.#node.kill9();
  }

  terminate(): Promise<number | null> {
    return this.#node.terminate();
  }

  freeze(): void {
    this.#node.freeze();
  }

  thaw(): void {
    this.#node.thaw();
  }
}
