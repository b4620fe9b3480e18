import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ObjectStore } from "@sandpiper/core";
import { removeLeftovers } from "../../bench/leftovers.ts";
import { openStore } from "../../packages/node/src/store/open-store.ts";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { startS3Server } from "../../packages/node/src/store/testing/s3-server.ts";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { guardDirectory } from "../cluster/sweep.ts";
import { MACHINE } from "../node/qemu-home.ts";
import { ChaosNode } from "./chaos-node.ts";
import type { ProviderName } from "./chaos-sandbox.ts";
import { ContainerEngine } from "./container-engine.ts";
import { DamagedObjects } from "./damaged-objects.ts";
import type { Random } from "./random.ts";
import { SmallDisk } from "./small-disk.ts";
import { StoreProxy } from "./store-proxy.ts";

const NODES = ["a", "b", "c"];
/** A machine's checkpoint contains its memory. */
const SIZES_MIB = { small: { home: 256, store: 512 }, machines: { home: 1024, store: 2048 } };
/** A machine in QEMU without KVM takes most of two processors while it boots or is saved. */
const LEASES_MS = { small: 3000, machines: 10_000 };
/** All nodes share one machine's clock; faults shift that of a node by up to half of this. */
export const MAX_SKEW_MS = 600;

export type StoreKind = "file" | "s3";

interface ChaosBedOptions {
  readonly store: StoreKind;
  readonly providers: readonly ProviderName[];
  readonly random: Random;
}

interface SharedStore {
  readonly store: ObjectStore;
  readonly env: NodeJS.ProcessEnv;
  /** Only for an S3 store. */
  readonly proxy?: StoreProxy | undefined;
  /** Only for a directory. */
  readonly disk?: SmallDisk | undefined;
  readonly directory?: string | undefined;
}

export type ChaosBed = Awaited<ReturnType<typeof startChaosBed>>;

/** Three nodes on one machine and a store; faults can be injected into each of them. */
export async function startChaosBed({ store, providers, random }: ChaosBedOptions) {
  await using parts = new AsyncDisposableStack();
  // The process id distinguishes a killed run's leftovers from a running one's files. Sockets need a short path.
  const directory = mkdtempSync(join(tmpdir(), `sp-chaos-${process.pid}-`));
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  const scale = providers.includes("qemu") ? "machines" : "small";
  const [sizes, leaseMs] = [SIZES_MIB[scale], LEASES_MS[scale]];
  const shared = store === "s3" ? await openBucket(parts, random) : await openDirectory(parts, directory, sizes.store);
  const env = {
    ...shared.env,
    SANDPIPER_CLUSTER_SECRET: randomBytes(24).toString("base64url"),
    SANDPIPER_PROVIDERS: providers.filter((name) => name !== "gvisor").join(","),
    SANDPIPER_IMAGES_DIR: await makeImages(directory, providers),
    SANDPIPER_LEASE_MS: `${leaseMs}`,
    SANDPIPER_MAX_SKEW_MS: `${MAX_SKEW_MS}`,
    SANDPIPER_STOP_GRACE_MS: "1000",
  };
  const engines = providers.includes("docker")
    ? await Promise.all(NODES.map(async () => parts.use(await ContainerEngine.start())))
    : [];
  const nodes: ChaosNode[] = [];
  for (const [index, name] of NODES.entries()) {
    const own = { ...env, ...engines[index]?.env };
    const node = await ChaosNode.make({ name, directory, port: await freePort(), diskMib: sizes.home, env: own });
    parts.defer(() => rmSync(guardDirectory(node.homeDir), { recursive: true, force: true }));
    parts.use(node);
    nodes.push(node);
  }
  // Runs before the disks are unmounted, because they hold the instances' records.
  parts.defer(() => removeLeftovers(directory));
  for (const node of nodes) parts.defer(() => node.kill9());
  // The first node creates the key that all share.
  for (const node of nodes) await node.start();
  const [{ apiKey }] = nodes as [ChaosNode];
  const owned = parts.move();
  return {
    nodes,
    leaseMs,
    engines,
    shared,
    apiKey,
    damage: (dice: Random) => new DamagedObjects({ ...shared, directory: shared.directory, random: dice }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function makeImages(directory: string, providers: readonly ProviderName[]): Promise<string> {
  const images = join(directory, "images");
  mkdirSync(images);
  if (providers.includes("qemu")) symlinkSync(await testRoot(), join(images, MACHINE.image));
  return images;
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

async function openDirectory(parts: AsyncDisposableStack, path: string, sizeMib: number): Promise<SharedStore> {
  const disk = parts.use(await SmallDisk.mount(join(path, "store"), sizeMib));
  const directory = join(disk.path, "objects");
  const url = `file://${directory}`;
  return { store: openStore(url), env: { SANDPIPER_STORE: url }, disk, directory };
}
