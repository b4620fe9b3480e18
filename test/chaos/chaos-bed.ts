import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ObjectStore } from "@sandpiper/core";
import { removeLeftovers } from "../../bench/leftovers.ts";
import { openStore } from "../../packages/node/src/store/open-store.ts";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { startS3Server } from "../../packages/node/src/store/testing/s3-server.ts";
import { guardDirectory } from "../cluster/sweep.ts";
import { ChaosNode } from "./chaos-node.ts";
import type { Random } from "./random.ts";
import { SmallDisk } from "./small-disk.ts";
import { StoreProxy } from "./store-proxy.ts";

const NODES = ["a", "b", "c"];
const STORE_MIB = 512;
export const LEASE_MS = 2500;
/** All nodes share one machine's clock. */
const MAX_SKEW_MS = 200;

export type StoreKind = "file" | "s3";

interface ChaosBedOptions {
  readonly store: StoreKind;
  readonly random: Random;
}

interface SharedStore {
  readonly store: ObjectStore;
  readonly env: NodeJS.ProcessEnv;
  /** Only for an S3 store. */
  readonly proxy?: StoreProxy | undefined;
  /** Only for a directory. */
  readonly disk?: SmallDisk | undefined;
}

export type ChaosBed = Awaited<ReturnType<typeof startChaosBed>>;

/** Three nodes on one machine and a store; faults can be injected into each of them. */
export async function startChaosBed({ store, random }: ChaosBedOptions) {
  await using parts = new AsyncDisposableStack();
  // The process id distinguishes a killed run's leftovers from a running one's files.
  const directory = mkdtempSync(join(tmpdir(), `sandpiper-chaos-${process.pid}-`));
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  const shared = store === "s3" ? await openBucket(parts, random) : await openDirectory(parts, directory);
  const env = {
    ...shared.env,
    SANDPIPER_CLUSTER_SECRET: randomBytes(24).toString("base64url"),
    SANDPIPER_LEASE_MS: `${LEASE_MS}`,
    SANDPIPER_MAX_SKEW_MS: `${MAX_SKEW_MS}`,
    SANDPIPER_STOP_GRACE_MS: "1000",
  };
  const nodes: ChaosNode[] = [];
  for (const name of NODES) {
    const node = await ChaosNode.make({ name, directory, port: await freePort(), env });
    parts.defer(() => rmSync(guardDirectory(node.homeDir), { recursive: true, force: true }));
    parts.use(node.disk);
    nodes.push(node);
  }
  // Runs before the disks are unmounted, because they hold the instances' records.
  parts.defer(() => removeLeftovers(directory));
  for (const node of nodes) parts.defer(() => node.kill9());
  // The first node creates the key that all share.
  for (const node of nodes) await node.start();
  const [{ apiKey }] = nodes as [ChaosNode];
  const owned = parts.move();
  return { nodes, shared, apiKey, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function openBucket(parts: AsyncDisposableStack, random: Random): Promise<SharedStore> {
  const server = parts.use(await startS3Server());
  await server.createBucket("chaos");
  const proxy = parts.use(await StoreProxy.start(server.endpoint, random));
  Object.assign(process.env, server.env);
  const url = "s3://chaos/bed";
  const env = { ...server.env, AWS_ENDPOINT_URL: proxy.url, SANDPIPER_STORE: url };
  return { store: openStore(url), env, proxy };
}

async function openDirectory(parts: AsyncDisposableStack, directory: string): Promise<SharedStore> {
  const disk = parts.use(await SmallDisk.mount(join(directory, "store"), STORE_MIB));
  const url = `file://${disk.path}/objects`;
  return { store: openStore(url), env: { SANDPIPER_STORE: url }, disk };
}
