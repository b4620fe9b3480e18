import { Agent } from "node:http";
import { join } from "node:path";
import type { Client } from "@sandpiper/sdk";
import { TestClient } from "../../packages/node/src/socket/testing/test-client.ts";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { NodeProcess } from "../../test/node/node-process.ts";
import { sendJson } from "../send-json.ts";

const LEASE_MS = 15_000;
const RESTORING = "SANDBOX_RESTORING";

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

  /** Attaches a client to a sandbox on the node that does not run it. Resolves to the time until the sandbox runs there. */
  async attach(id: string): Promise<number> {
    const target = this.#nextPlace(id);
    const { url } = this.#nodes[target].started;
    const { apiKey } = this.#nodes[0].started;
    const startedAt = performance.now();
    const session = new TestClient(`${url.replace(/^http/, "ws")}/attach/${id}`, { credential: apiKey });
    const messages = await session.until((message) => !("status" in message) || message.status !== RESTORING);
    const tookMs = performance.now() - startedAt;
    await session.close();
    const last = JSON.stringify(messages.at(-1));
    if (!last.includes("SANDBOX_RUNNING")) throw new Error(`could not attach to sandbox ${id}: ${last}`);
    this.#places.set(id, target);
    return tookMs;
  }

  /** Moves a sandbox to the other node. */
  async handOff(id: string): Promise<void> {
    const target = this.#nextPlace(id);
    const url = `${this.#nodes[target].started.url}/v1/sandboxes/${id}/handoff`;
    // Keys belong to the cluster, so the first node's key works on the second.
    const { apiKey } = this.#nodes[0].started;
    const headers = { authorization: `Bearer ${apiKey}` };
    await sendJson(url, { method: "POST", agent: this.#agent, headers }, {});
    this.#places.set(id, target);
  }

  #nextPlace(id: string): 0 | 1 {
    return this.#places.get(id) === 1 ? 0 : 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    this.client.close();
    await Promise.all(this.#nodes.map((node) => node.stop()));
  }
}
