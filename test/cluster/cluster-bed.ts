import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFailed, onTestFinished } from "vitest";
import { newBedName } from "./bed-name.ts";
import { ClusterNode } from "./cluster-node.ts";
import { type Door, openDoors, ownLoopbackAddress } from "./doors.ts";
import { Haproxy } from "./haproxy.ts";
import { type Host, Network } from "./network.ts";
import { bedDirectory, removeAbandonedBeds, removeBed } from "./sweep.ts";

/** The file that operators deploy. */
const balancerConfig = fileURLToPath(new URL("../../deploy/haproxy/haproxy.cfg", import.meta.url));
const NODE_NAMES = ["node-1", "node-2", "node-3"] as const;
const NODE_PORT = 4747;
const BALANCER_PORT = 8080;
const STORE_PORT = 7070;
const FIRST_DOOR_PORT = 4700;
const DOORS_PER_BED = 10;
const SHOWN_LINES = 20;

/** Nodes reach the server through the hub, so that a node that is cut off loses the store, too. */
interface BucketStore {
  readonly url: `s3://${string}` | `gs://${string}`;
  readonly endpoint: string;
  /** The variables with which nodes reach the server; those that are its endpoint get the hub's address instead. */
  readonly env: Readonly<Record<string, string>>;
}

interface ClusterBedOptions {
  /** The nodes' shared store, a directory or a bucket; without one, the nodes are standalone. */
  readonly store?: "file" | BucketStore | undefined;
  /** Settings of every node, as its environment. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** The nodes have no URL, and the network passes no packet between them. */
  readonly isIsolated?: boolean | undefined;
}

interface BedParts {
  readonly name: string;
  readonly network: Network;
  readonly url: string;
  readonly balancer: Haproxy;
  readonly nodes: readonly [ClusterNode, ClusterNode, ...ClusterNode[]];
}

/** Three nodes and a real HAProxy in front of them, each in its own network namespace. */
export class ClusterBed implements AsyncDisposable {
  readonly #name: string;
  readonly #network: Network;
  /** The load balancer's address for clients. */
  readonly url: string;
  readonly balancer: Haproxy;
  readonly nodes: readonly [ClusterNode, ClusterNode, ...ClusterNode[]];
  #removed: Promise<void> | undefined;

  private constructor({ name, network, url, balancer, nodes }: BedParts) {
    this.#name = name;
    this.#network = network;
    this.url = url;
    this.balancer = balancer;
    this.nodes = nodes;
  }

  static async start(options: ClusterBedOptions = {}): Promise<ClusterBed> {
    await removeAbandonedBeds();
    const { name, number } = newBedName();
    try {
      const bed = new ClusterBed(await build(name, FIRST_DOOR_PORT + number * DOORS_PER_BED, options));
      // A test that times out does not dispose its resources.
      onTestFinished(() => bed[Symbol.asyncDispose]());
      onTestFailed(() => bed.#printLogs());
      return bed;
    } catch (error) {
      await removeBed(name);
      throw error;
    }
  }

  /** A node's name in the balancer, its cookie and the network. */
  nameOf(node: ClusterNode): string {
    return NODE_NAMES[this.nodes.indexOf(node)] as string;
  }

  /** Drops all packets to and from this node until `heal`. */
  cut(node: ClusterNode): Promise<void> {
    return this.#network.cut(this.nameOf(node));
  }

  heal(node: ClusterNode): Promise<void> {
    return this.#network.heal(this.nameOf(node));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#removed ??= removeBed(this.#name);
    await this.#removed;
  }

  #printLogs(): void {
    for (const node of this.nodes) console.error([this.nameOf(node), ...node.log.slice(-SHOWN_LINES)].join("\n  "));
  }
}

async function build(name: string, doorPort: number, options: ClusterBedOptions): Promise<BedParts> {
  const { store, env, isIsolated = false } = options;
  const directory = bedDirectory(name);
  mkdirSync(directory, { mode: 0o700 });
  const network = await Network.create(name);
  const balancerHost = await network.addHost("balancer", 10);
  const hosts = await Promise.all(NODE_NAMES.map((node, index) => network.addHost(node, 11 + index)));
  if (isIsolated) await Promise.all(NODE_NAMES.map((node) => network.isolate(node)));

  const inside = [balancerHost, ...hosts].map(
    ({ address }, at) => `${address}:${at === 0 ? BALANCER_PORT : NODE_PORT}`,
  );
  const doors = inside.map((target, at): Door => {
    const bind = `${ownLoopbackAddress()}:${doorPort + at}`;
    return { name: `door-${at}`, bind, target, targetNamespace: network.hubNamespace };
  });
  const [balancerUrl = "", ...nodeUrls] = doors.map(({ bind }) => `http://${bind}`);
  await openDoors(directory, [...doors, ...storeDoor(network, store)]);

  const shared = store === undefined ? {} : sharedSettings(directory, network, store);
  const nodes = hosts.map((host, at) => {
    const advertised =
      store === undefined || isIsolated ? {} : { SANDPIPER_ADVERTISE_URL: `http://${host.address}:${NODE_PORT}` };
    return new ClusterNode({
      host,
      listenOn: isIsolated ? "0.0.0.0" : undefined,
      port: NODE_PORT,
      homeDir: join(directory, NODE_NAMES[at] as string),
      url: nodeUrls[at] as string,
      env: { ...shared, ...advertised, ...env },
    });
  }) as [ClusterNode, ClusterNode, ClusterNode];
  // The first node creates the key that all share when they have a store.
  await nodes[0].start();
  await Promise.all(nodes.slice(1).map((node) => node.start()));
  const balancer = await startBalancer(directory, balancerHost, hosts);
  return { name, network, url: balancerUrl, balancer, nodes };
}

function startBalancer(directory: string, host: Host, nodes: readonly Host[]): Promise<Haproxy> {
  const adminSocket = join(directory, "balancer.sock");
  const servers = nodes.map(({ address }, at) => [`SANDPIPER_NODE_${at + 1}`, `${address}:${NODE_PORT}`]);
  const bind = { SANDPIPER_BIND: `${host.address}:${BALANCER_PORT}`, SANDPIPER_ADMIN_SOCKET: adminSocket };
  const env = { ...Object.fromEntries(servers), ...bind };
  return Haproxy.start({ configFile: balancerConfig, adminSocket, enter: host.enter, env });
}

function storeDoor({ hubAddress, hubNamespace }: Network, store: ClusterBedOptions["store"]): readonly Door[] {
  if (store === undefined || store === "file") return [];
  const { host } = new URL(store.endpoint);
  return [{ name: "store", bind: `${hubAddress}:${STORE_PORT}`, bindNamespace: hubNamespace, target: host }];
}

function sharedSettings(directory: string, { hubAddress }: Network, store: "file" | BucketStore): NodeJS.ProcessEnv {
  const secret = { SANDPIPER_CLUSTER_SECRET: randomBytes(24).toString("base64url") };
  if (store === "file") return { ...secret, SANDPIPER_STORE: `file://${join(directory, "store")}` };
  const throughHub = (value: string) => (value === store.endpoint ? `http://${hubAddress}:${STORE_PORT}` : value);
  const env = Object.entries(store.env).map(([name, value]) => [name, throughHub(value)]);
  return { ...secret, ...Object.fromEntries(env), SANDPIPER_STORE: store.url };
}
