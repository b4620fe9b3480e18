import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newBedName } from "../../test/cluster/bed-name.ts";
import { ClusterNode } from "../../test/cluster/cluster-node.ts";
import { openDoors, ownLoopbackAddress } from "../../test/cluster/doors.ts";
import { inNamespace } from "../../test/cluster/namespaces.ts";
import { type Host, Network } from "../../test/cluster/network.ts";
import { bedDirectory, removeAbandonedBeds, removeBed } from "../../test/cluster/sweep.ts";
import { guestPrograms } from "../guest-programs.ts";
import { run } from "../run.ts";
import type { Workspace } from "../workspace.ts";

const NODE_PORT = 4747;
const DOOR_PORT = 5790;
/** A line of /proc/net/tcp: local port 7001, any peer, established. */
const ECHO_CONNECTION = /^\s*\d+: [0-9A-F]{8}:1B59 \S+ 01 /;
/** Beyond what Docker gives to its containers. */
const SERVER_BYTE = 200;

/**
 * A server behind a bridge, in network namespaces of its own. The node, Docker and slirp4netns are in the namespace of the
 * bridge, so that each of them takes the same way to the server.
 */
export class BenchNetwork implements AsyncDisposable {
  readonly server: Host;
  readonly node: ClusterNode;
  readonly hub: Network;
  readonly #bed: string;

  private constructor(bed: string, hub: Network, parts: { readonly server: Host; readonly node: ClusterNode }) {
    this.#bed = bed;
    this.hub = hub;
    this.server = parts.server;
    this.node = parts.node;
  }

  static async start(workspace: Workspace, config: Readonly<Record<string, unknown>> = {}): Promise<BenchNetwork> {
    await removeAbandonedBeds();
    const bed = newBedName().name;
    try {
      const directory = bedDirectory(bed);
      mkdirSync(directory, { mode: 0o700 });
      const hub = await Network.create(bed);
      const server = await hub.addHost("server", SERVER_BYTE);
      const { net } = await guestPrograms(workspace);
      await startServer(server.enter([net, "serve", server.address]));
      const node = await startNode(directory, { hub, config: { network: allowing(server), ...config } });
      // Owned by the run, because the container and its engine end before their network does.
      return workspace.own(new BenchNetwork(bed, hub, { server, node }));
    } catch (error) {
      await removeBed(bed);
      throw error;
    }
  }

  /** The command line that runs a program in the bridge's namespace. */
  enter(argv: readonly string[]): readonly [string, ...string[]] {
    return inNamespace(this.hub.hubNamespace, argv);
  }

  /** How many connections the server's echo port has open. */
  async openConnections(): Promise<number> {
    const [program, ...args] = this.server.enter(["cat", "/proc/net/tcp"]);
    const { stdout } = await run(program, args);
    return stdout.split("\n").filter((line) => ECHO_CONNECTION.test(line)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node.terminate();
    await removeBed(this.#bed);
  }
}

const allowing = ({ address }: Host) => ({ allowedCidrs: [`${address}/32`] });

async function startNode(
  directory: string,
  { hub, config }: { readonly hub: Network; readonly config: Readonly<Record<string, unknown>> },
): Promise<ClusterNode> {
  const bind = `${ownLoopbackAddress()}:${DOOR_PORT}`;
  const target = `${hub.hubAddress}:${NODE_PORT}`;
  await openDoors(directory, [{ name: "node", bind, target, targetNamespace: hub.hubNamespace }]);
  const homeDir = join(directory, "node");
  mkdirSync(homeDir, { mode: 0o700 });
  writeFileSync(join(homeDir, "config.json"), JSON.stringify(config));
  const host = { address: hub.hubAddress, enter: (argv: readonly string[]) => inNamespace(hub.hubNamespace, argv) };
  const node = new ClusterNode({ host, port: NODE_PORT, homeDir, url: `http://${bind}`, env: {} });
  await node.start();
  return node;
}

/** It ends when its namespace is removed. */
async function startServer([program, ...args]: readonly [string, ...string[]]): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const bytes of child.stdout) if (String(bytes).includes("ready")) break;
  child.unref();
}
