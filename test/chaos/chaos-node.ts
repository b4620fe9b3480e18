import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@sandpiper/sdk";
import { ClusterNode, type ClusterNodeOptions } from "../cluster/cluster-node.ts";
import { SmallDisk } from "./small-disk.ts";

const DISK_MIB = 256;
const START_MS = 90_000;
const RECONNECT_MS = 4000;

export interface ChaosNodeOptions extends Pick<ClusterNodeOptions, "port" | "env"> {
  readonly name: string;
  readonly directory: string;
}

/** A node of a cluster on one machine, with its home on a small disk that a fault can fill. */
export class ChaosNode extends ClusterNode {
  readonly name: string;
  readonly disk: SmallDisk;

  private constructor(name: string, disk: SmallDisk, options: ClusterNodeOptions) {
    super(options);
    this.name = name;
    this.disk = disk;
  }

  static async make({ name, directory, port, env }: ChaosNodeOptions): Promise<ChaosNode> {
    const homeDir = join(directory, name);
    const disk = await SmallDisk.mount(homeDir, DISK_MIB);
    const address = "127.0.0.1";
    const host = { address, enter: (argv: readonly string[]) => argv as readonly [string, ...string[]] };
    return new ChaosNode(name, disk, {
      host,
      port,
      homeDir,
      url: `http://${address}:${port}`,
      env: { ...env, SANDPIPER_RESERVE_DISK_MIB: "0" },
    });
  }

  override client(apiKey: string): Client {
    return new Client({ url: this.url, apiKey, reconnectTimeoutMs: RECONNECT_MS });
  }

  get isRunning(): boolean {
    return existsSync(`/proc/${this.pid}`);
  }

  /** Starts the node, with retries like a supervisor's. */
  async revive(): Promise<void> {
    const endAt = performance.now() + START_MS;
    for (;;) {
      try {
        return await this.start();
      } catch (thrown) {
        if (performance.now() > endAt) throw thrown;
        await sleep(300);
      }
    }
  }
}
