import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@sandpiper/sdk";
import { ClusterNode, type ClusterNodeOptions } from "../cluster/cluster-node.ts";
import { NetworkProxy } from "./network-proxy.ts";
import { NodeClock } from "./node-clock.ts";
import { SmallDisk } from "./small-disk.ts";

const START_MS = 90_000;
const RECONNECT_MS = 4000;

export interface ChaosNodeOptions extends Pick<ClusterNodeOptions, "port" | "env"> {
  readonly name: string;
  readonly directory: string;
  readonly diskMib: number;
}

interface ChaosNodeParts {
  readonly name: string;
  readonly disk: SmallDisk;
  readonly clientSide: NetworkProxy;
  readonly nodeSide: NetworkProxy;
  readonly clockFile: string;
}

/** A node of a cluster on one machine. Faults can fill its disk, disturb its networks and set its clock. */
export class ChaosNode extends ClusterNode implements AsyncDisposable {
  readonly name: string;
  readonly disk: SmallDisk;
  /** The network between the clients and this node. */
  readonly clientSide: NetworkProxy;
  /** The network between the other nodes and this one. */
  readonly nodeSide: NetworkProxy;
  readonly clock: NodeClock;

  private constructor({ name, disk, clientSide, nodeSide, clockFile }: ChaosNodeParts, options: ClusterNodeOptions) {
    const clock = new NodeClock(clockFile, () => {
      if (this.isRunning) process.kill(this.pid, "SIGUSR2");
    });
    super({ ...options, env: { ...options.env, ...clock.env } });
    this.name = name;
    this.disk = disk;
    this.clientSide = clientSide;
    this.nodeSide = nodeSide;
    this.clock = clock;
  }

  static async make({ name, directory, port, diskMib, env }: ChaosNodeOptions): Promise<ChaosNode> {
    const homeDir = join(directory, name);
    const disk = await SmallDisk.mount(homeDir, diskMib);
    const [clientSide, nodeSide] = [await NetworkProxy.start(port), await NetworkProxy.start(port)];
    const host = { address: "127.0.0.1", enter: (argv: readonly string[]) => argv as readonly [string, ...string[]] };
    return new ChaosNode(
      { name, disk, clientSide, nodeSide, clockFile: join(directory, `${name}.clock`) },
      {
        host,
        port,
        homeDir,
        url: clientSide.url,
        env: { ...env, SANDPIPER_RESERVE_DISK_MIB: "0", SANDPIPER_ADVERTISE_URL: nodeSide.url },
      },
    );
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

  async [Symbol.asyncDispose](): Promise<void> {
    await this.clientSide[Symbol.asyncDispose]();
    await this.nodeSide[Symbol.asyncDispose]();
    await this.disk[Symbol.asyncDispose]();
  }
}
