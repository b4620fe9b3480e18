import { mkdtempSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { FakeClock, MemoryStore } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { ClusterSecret } from "../../../packages/node/src/cluster/cluster-secret.ts";
import { joinCluster } from "../../../packages/node/src/cluster/join-cluster.ts";
import { openCluster } from "../../../packages/node/src/cluster/open-cluster.ts";
import { QuotaLedger } from "../../../packages/node/src/cluster/quota-ledger.ts";
import { SharedNames } from "../../../packages/node/src/cluster/shared-names.ts";
import { parseNodeConfig } from "../../../packages/node/src/config/load-node-config.ts";
import { savedSandboxJson } from "../../../packages/node/src/ownership/saved-sandbox.ts";
import { StandaloneOwnership } from "../../../packages/node/src/ownership/standalone-ownership.ts";
import { CheckpointStore } from "../../../packages/node/src/store/checkpoint-store.ts";
import { openObject, sealObject } from "../../../packages/node/src/store/sealed-objects.ts";
import { SealedStates } from "../../../packages/node/src/store/sealed-states.ts";
import { contentOf, signObject } from "../../../packages/node/src/store/signed-object.ts";
import { isControlObject } from "../../../packages/node/src/store/signed-store.ts";
import { sandboxRecord } from "../../../packages/node/src/testing/sandbox-record.ts";
import { fuzz, fuzzTimeoutMs } from "./fuzz-in-process.ts";
import { type Tampering, tamperedBytes, tamperings, withField } from "./malformed-objects.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-fuzz-objects-"));
afterAll(() => rm(root, { recursive: true, force: true }));

const SECRET = "a secret for this test";
const CONTENT = Buffer.from("the memory of a sandbox\n".repeat(2000));
const REFUSALS = [
  "object_damaged",
  "object_forged",
  "object_replayed",
  "checkpoint_damaged",
  "state_damaged",
  "state_too_new",
  "checkpoint_too_new",
  "store_too_new",
  "store_not_migrated",
  "wrong_cluster_secret",
];

/** Reads an object as a node does. Resolves to what the node then believes. */
type Reader = () => Promise<unknown>;

/** A cluster with an object of each kind, and a reader for each. */
async function openBed() {
  const store = new MemoryStore();
  const clock = new FakeClock();
  const config = parseNodeConfig({ home: root, clusterSecret: SECRET });
  const options = { describe: () => ({ isDraining: false, sandboxes: 0 }), onError: () => {} };
  const ownKeys = { keys: [], tenants: new Map() };
  const cluster = await openCluster({ ...options, config, store, clock, version: "1.2.3", ownKeys });
  await cluster.registry.start();
  const { control, keyring, keys } = cluster;
  const secret = new ClusterSecret({ home: root, configured: SECRET });
  const checkpointStore = new CheckpointStore({ store, keyring, clock, directory: join(root, "tmp") });
  const saved = await mkdtemp(join(root, "saved-"));
  await writeFile(join(saved, "image"), CONTENT);
  const keyOf = async (prefix: string) => (await Array.fromAsync(store.list(prefix), ({ key }) => key)).sort()[0] ?? "";
  const owner = { id: createSandboxId(), tenant: "mine" };
  await checkpointStore.save(owner, "c", saved);
  // Before another tenant's chunk exists, which no reader below loads.
  const chunk = await keyOf("chunks/");
  await checkpointStore.save({ id: createSandboxId(), tenant: "theirs" }, "c", saved);
  const states = new StandaloneOwnership(new SealedStates(control, keyring));
  const record = sandboxRecord({ ...owner, labels: { a: "b" }, metadata: { c: [1] } });
  await new SealedStates(control, keyring).put(
    `states/${owner.id}.state`,
    Buffer.from(JSON.stringify(savedSandboxJson({ record, requirements: {}, checkpoints: [] }, undefined))),
  );
  const names = new SharedNames({ store: control, clock, isNamed: async () => true });
  await names.take({ tenant: "mine", name: "box", id: owner.id });
  const quota = new QuotaLedger({ store: control, clock, key: "quotas/k.json" });
  await quota.change((holdings) => {
    const holding = { sandboxes: 1, memoryMib: 1, vcpuCount: 1, diskMib: 1, checkpoints: 0, checkpointBytes: 0 };
    holdings.set(owner.id, { node: "n", ...holding });
  });
  const lease = await cluster.leases.acquire(owner.id);
  await keys.updateTenant("mine", { quota: { maxSandboxes: 3 } });
  const load: Reader = async () => {
    const directory = await mkdtemp(join(root, "load-"));
    try {
      await checkpointStore.load(owner, "c", directory);
      const names = await readdir(directory);
      return await Promise.all(names.map(async (name) => (await readFile(join(directory, name))).equals(CONTENT)));
    } finally {
      await rm(directory, { recursive: true });
    }
  };
  const readers: Readonly<Record<string, Reader>> = {
    "cluster.json": async () => (await joinCluster({ store, secret, clock })).id,
    "keys.json": () => keys.list(),
    [`locks/${owner.id}.lock`]: () => cluster.leases.read(owner.id),
    [await keyOf("nodes/")]: () => cluster.registry.list(),
    "quotas/k.json": async () => [...(await quota.read())],
    [await keyOf("names/")]: () => names.take({ tenant: "mine", name: "box", id: owner.id }),
    [`states/${owner.id}.state`]: async () => await states.peek(owner.id),
    [`checkpoints/${owner.id}/c.json`]: load,
    [chunk]: load,
  };
  return { store, clock, keyring, readers, lease };
}

type Bed = Awaited<ReturnType<typeof openBed>>;

const SEQUENCE = / (\d{16}) [A-Za-z0-9_-]{43}$/;

/** What a node of the cluster could have written instead; undefined if the object is not JSON. */
function writtenByMember({ keyring }: Bed, key: string, stored: Buffer, change: (text: string) => string) {
  if (isControlObject(key)) {
    const sequence = Number(SEQUENCE.exec(stored.toString("latin1"))?.[1] ?? 0) + 1;
    const content = Buffer.from(contentOf(stored) ?? []).toString();
    return signObject(keyring, { key, sequence }, Buffer.from(change(content)));
  }
  const opened = openObject(keyring, key, stored);
  return "fault" in opened ? undefined : sealObject(keyring, key, Buffer.from(change(opened.content.toString())));
}

interface Input {
  readonly object: number;
  readonly tampering: Tampering;
}

async function tampered(bed: Bed, key: string, stored: Buffer, tampering: Tampering): Promise<Uint8Array | undefined> {
  const { store, readers } = bed;
  if (tampering.kind === "member") return writtenByMember(bed, key, stored, () => tampering.text);
  if (tampering.kind === "member field") {
    return writtenByMember(bed, key, stored, (text) => withField(text, tampering.field, tampering.value));
  }
  if (tampering.kind === "swap") {
    const others = (await Array.fromAsync(store.list(""), (info) => info.key)).sort().filter((other) => other !== key);
    return (await store.get(others[tampering.other % others.length] ?? ""))?.bytes;
  }
  if (tampering.kind !== "older") return tamperedBytes(stored, tampering);
  // A newer version exists and was seen.
  const newer = writtenByMember(bed, key, stored, (text) => text);
  if (newer === undefined || !isControlObject(key) || key.startsWith("nodes/")) return undefined;
  await store.put(key, newer);
  await readers[key]?.().catch(() => {});
  return stored;
}

describe("malformed objects of the store", () => {
  it("are refused with a reason, and never believed", { timeout: fuzzTimeoutMs }, async () => {
    const bed = await openBed();
    const { store, readers } = bed;
    const keys = Object.keys(readers);
    expect(new Set(keys).size).toBe(9);
    const send = async ({ object, tampering }: Input) => {
      const key = keys[object % keys.length] ?? "";
      const read = readers[key] as Reader;
      const believed = await read();
      const stored = Buffer.from((await store.get(key))?.bytes ?? []);
      const bytes = await tampered(bed, key, stored, tampering);
      const isSame = bytes === undefined || (tampering.kind !== "older" && stored.equals(bytes));
      if (isSame) return "nothing to do";
      await store.put(key, bytes);
      try {
        const now = await read();
        const isMember = tampering.kind.startsWith("member");
        if (key.startsWith("nodes/")) return "ignored";
        if (!isMember) expect(now, `${tampering.kind} of ${key}`).toEqual(believed);
        return isMember ? "read what a member wrote" : "kept what it knew";
      } catch (thrown) {
        if (!(thrown instanceof SandboxError) || !REFUSALS.includes(thrown.reason)) throw thrown;
        return thrown.reason;
      } finally {
        const current = Buffer.from((await store.get(key))?.bytes ?? []);
        // Above every sequence number so far, except where the node has put its own version back.
        if (current.equals(bytes)) await store.put(key, restored(bed, key, stored));
        await bed.clock.advance(1000);
      }
    };
    const outcomes = await fuzz<Input>({
      name: "store objects",
      inputs: fc.record({ object: fc.nat(), tampering: tamperings }),
      shortInputs: 250,
      send,
    });
    expect(Object.keys(outcomes)).toEqual(expect.arrayContaining(REFUSALS.slice(0, 5)));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

/** Further apart than the writes of a node during one input. */
const SEQUENCE_STEP = 1000;
let restoredSequence = Date.now() * 2;

function restored({ keyring }: Bed, key: string, stored: Buffer): Uint8Array {
  if (!isControlObject(key) || key === "cluster.json") return stored;
  restoredSequence += SEQUENCE_STEP;
  return signObject(keyring, { key, sequence: restoredSequence }, contentOf(stored) ?? stored);
}
