import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NetworkBody, NetworkLog, NetworkSuggestion } from "@sandpiper/protocol";
import { eventually } from "../../../packages/providers/src/docker/testing/eventually.ts";
import { newBedName } from "../../cluster/bed-name.ts";
import { ClusterNode } from "../../cluster/cluster-node.ts";
import { openDoors, ownLoopbackAddress } from "../../cluster/doors.ts";
import { Network } from "../../cluster/network.ts";
import { bedDirectory, removeAbandonedBeds, removeBed } from "../../cluster/sweep.ts";
import { addRoutes } from "./add-routes.ts";
import { ALLOWED_CIDRS, addresses } from "./addresses.ts";
import { World, type WorldOptions } from "./world.ts";

const NODE_PORT = 4747;
const FIRST_DOOR_PORT = 5700;

export interface NetworkBedOptions {
  readonly daemons?: WorldOptions["daemons"];
  /** Two nodes share a store; one node has none. */
  readonly nodes?: 1 | 2;
  /** Further settings of every node, as in its configuration file. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env?: NodeJS.ProcessEnv;
  /** The directory of the nodes' homes, if the bed's own has a path that is too long for the sockets of virtual machines. */
  readonly homes?: string;
}

/**
 * Nodes and the tests' internet, each in its own network namespace. A node has routes to nothing else, so that no attempt of a
 * test, not even a successful one, leaves the machine or reaches the machine's own network.
 */
export class NetworkBed implements AsyncDisposable {
  readonly world: World;
  readonly nodes: readonly [ClusterNode, ...ClusterNode[]];
  readonly #name: string;
  #removed: Promise<void> | undefined;

  private constructor(name: string, world: World, nodes: readonly [ClusterNode, ...ClusterNode[]]) {
    this.#name = name;
    this.world = world;
    this.nodes = nodes;
  }

  get node(): ClusterNode {
    return this.nodes[0];
  }

  static async start(options: NetworkBedOptions = {}): Promise<NetworkBed> {
    await removeAbandonedBeds();
    const { name, number } = newBedName();
    try {
      return await build(name, FIRST_DOOR_PORT + number * 2, options, (...parts) => new NetworkBed(...parts));
    } catch (error) {
      await removeBed(name);
      throw error;
    }
  }

  /** The namespace of a node: its loopback is the "host loopback" of escape attempts. */
  namespaceOf(node: ClusterNode): string {
    return `${this.#name}-node-${this.nodes.indexOf(node) + 1}`;
  }

  /** Replaces the network policy of a running sandbox. */
  async setNetwork(id: string, network: NetworkBody): Promise<void> {
    await this.request("PUT", `/v1/sandboxes/${id}/network`, network);
  }

  /** What was recorded about a sandbox's network, all connections of which have ended. */
  async networkLog(id: string): Promise<NetworkLog["items"]> {
    const read = async () =>
      ((await this.request("GET", `/v1/sandboxes/${id}/network/log?limit=1000`)) as NetworkLog).items;
    await eventually(async () => (await read()).every(({ endedAt }) => endedAt !== null), "connections remain open");
    return await read();
  }

  async networkSuggestion(id: string): Promise<NetworkSuggestion> {
    return (await this.request("GET", `/v1/sandboxes/${id}/network/suggestion`)) as NetworkSuggestion;
  }

  /** A request to a node's REST interface; fails unless it succeeds. */
  async request(method: string, path: string, body?: unknown): Promise<unknown> {
    const { apiKey, url } = this.node;
    const headers = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) ?? null });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} failed with ${response.status}: ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#removed ??= this.#remove();
    await this.#removed;
  }

  async #remove(): Promise<void> {
    this.world.stop();
    for (const node of this.nodes) await node.terminate();
    await removeBed(this.#name);
  }
}

async function build<T>(
  name: string,
  doorPort: number,
  { daemons = [], nodes: count = 1, config = {}, env = {}, homes }: NetworkBedOptions,
  assemble: (name: string, world: World, nodes: readonly [ClusterNode, ...ClusterNode[]]) => T,
): Promise<T> {
  const directory = bedDirectory(name);
  mkdirSync(directory, { mode: 0o711 });
  const network = await Network.create(name);
  await network.addHost("world", 10);
  const names = ["node-1", "node-2"].slice(0, count);
  const hosts = await Promise.all(names.map((node, index) => network.addHost(node, 11 + index)));
  await Promise.all(names.map((node, index) => addRoutes(`${name}-${node}`, 11 + index)));
  const world = await World.start(`${name}-world`, { directory: join(directory, "world"), daemons });

  const binds = names.map((_, at) => `${ownLoopbackAddress()}:${doorPort + at}`);
  const doors = hosts.map(({ address }, at) => ({
    name: `door-${at}`,
    bind: binds[at] as string,
    target: `${address}:${NODE_PORT}`,
    targetNamespace: network.hubNamespace,
  }));
  await openDoors(directory, doors);
  const shared = count === 1 ? {} : sharedSettings(directory);
  const nodes = hosts.map((host, at) => {
    const homeDir = join(homes ?? directory, names[at] as string);
    writeConfig(homeDir, config);
    const advertised = count === 1 ? {} : { SANDPIPER_ADVERTISE_URL: `http://${host.address}:${NODE_PORT}` };
    const settings = { ...shared, ...advertised, ...env };
    return new ClusterNode({ host, port: NODE_PORT, homeDir, url: `http://${binds[at]}`, env: settings });
  }) as [ClusterNode, ...ClusterNode[]];
  // The first node creates the key that all share.
  for (const node of nodes) await node.start();
  return assemble(name, world, nodes);
}

function writeConfig(homeDir: string, config: Readonly<Record<string, unknown>>): void {
  mkdirSync(homeDir, { mode: 0o700 });
  const network = { allowedCidrs: ALLOWED_CIDRS, resolvers: [addresses.dns] };
  writeFileSync(join(homeDir, "config.json"), JSON.stringify({ network, ...config }));
}

function sharedSettings(directory: string): NodeJS.ProcessEnv {
  const SANDPIPER_CLUSTER_SECRET = randomBytes(24).toString("base64url");
  return { SANDPIPER_CLUSTER_SECRET, SANDPIPER_STORE: `file://${join(directory, "store")}` };
}
