import { Agent } from "node:http";
import { join } from "node:path";
import type { Client } from "@sandpiper/sdk";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { NodeProcess } from "../../test/node/node-process.ts";
import { sendJson } from "../send-json.ts";

const LEASE_MS = 15_000;

/** Two nodes of one cluster, on this machine. */
export class NodePair implements AsyncDisposable {
  readonly #nodes: readonly [NodeProcess, NodeProcess];
  readonly #agent = new Agent({ keepAlive: true });
  /** Which of the two holds a sandbox; the first one holds those that never moved. */
  readonly #places = new Map<string, 0 | 1>();

  private constructor(nodes: readonly [NodeProcess, NodeProcess]) {
    this.#nodes = nodes;
  }

  /** Both homes are in `dir`. */
  static async start({ dir, store }: { readonly dir: string; readonly store: string }): Promise<NodePair> {
    const clusterSecret = crypto.randomUUID();
    const common = { store, clusterSecret, leaseMs: LEASE_MS, logLevel: "warn" } as const;
    // Other nodes must know the port before the node listens.
    const start = async (name: string) =>
      NodeProcess.start({ ...common, home: join(dir, name), port: await freePort() });
    const first = await start("a");
    try {
      return new NodePair([first, await start("b")]);
    } catch (thrown) {
      await first.stop();
      throw thrown;
    }
  }

  /** A client of the first node. */
  get client(): Client {
    return this.#nodes[0].client;
  }

  /** Moves a sandbox to the other node. */
  async handOff(id: string): Promise<void> {
    const target = this.#places.get(id) === 1 ? 0 : 1;
    const url = `${this.#nodes[target].started.url}/v1/sandboxes/${id}/handoff`;
    // Keys belong to the cluster, so the first node's key works on the second.
    const { apiKey } = this.#nodes[0].started;
    const headers = { authorization: `Bearer ${apiKey}` };
    await sendJson(url, { method: "POST", agent: this.#agent, headers }, {});
    this.#places.set(id, target);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    this.client.close();
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }
}
