import { type SandboxError, systemClock } from "@sandpiper/core";
import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { createSandboxId, type Quota, type SandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { NO_QUOTA, NO_USAGE, type Payer } from "../auth/quota.ts";
import { SharedQuotas } from "./shared-quotas.ts";

const keyId = "0a1b2c3d";
const one = { ...NO_USAGE, sandboxes: 1, memoryMib: 256, vcpuCount: 1, diskMib: 100 };
const payer = { keyId, tenant: "t" };
const DOCUMENT = `quotas/${keyId}.json`;

let keyQuota: Quota;
let tenantQuota: Quota;
let alive: Set<string>;
let existing: Set<string>;
let errors: SandboxError[];
let fails: (operation: string) => "before" | "after" | undefined;
/** The largest number of holdings ever stored. */
let most: number;
let store: MemoryStore;

beforeEach(() => {
  key({ maxSandboxes: 3 });
  alive = new Set(["a", "b", "c"]);
  existing = new Set();
  errors = [];
  fails = () => undefined;
  most = 0;
  store = new MemoryStore({
    fault: ({ operation, number }) => {
      const fail = fails(operation);
      // Varying delays, so that no node is always the last.
      return { delayMs: 1 + (number % 5), answerDelayMs: 1 + (number % 3), ...(fail && { fail }) };
    },
  });
  const put = store.put.bind(store);
  store.put = async (key, bytes, condition) => {
    const tag = await put(key, bytes, condition);
    if (tag !== undefined) {
      most = Math.max(most, Object.keys(JSON.parse(Buffer.from(bytes).toString()).holdings).length);
    }
    return tag;
  };
});

/** Sets the quotas of the key and its tenant on all nodes. */
function key(quota: object, tenant: object = {}): Payer {
  keyQuota = { ...NO_QUOTA, ...quota };
  tenantQuota = { ...NO_QUOTA, ...tenant };
  return payer;
}

function node(nodeId: string, { clock = systemClock } = {}): SharedQuotas {
  return new SharedQuotas({
    store,
    nodeId,
    clock,
    quotas: { keyQuota: () => keyQuota, tenantQuota: () => tenantQuota },
    isNodeAlive: async (id) => alive.has(id),
    exists: async (id) => existing.has(id),
    onError: (error) => errors.push(error),
  });
}

/** Creates a sandbox as a node does. */
async function create(quotas: SharedQuotas, owner = payer): Promise<SandboxId> {
  using reservation = await quotas.reserve(owner, one);
  const id = createSandboxId();
  await reservation.bind(id);
  existing.add(id);
  return id;
}

async function held(): Promise<readonly string[]> {
  const stored = await store.get(DOCUMENT);
  return Object.keys(JSON.parse(Buffer.from(stored?.bytes ?? []).toString()).holdings);
}

const refused = { code: "resource_exhausted", reason: "quota_exceeded" };

describe("a quota in a cluster", () => {
  it("is enforced and fully used when three nodes create and destroy sandboxes at the same time", async () => {
    const nodes = ["a", "b", "c"].map((id) => node(id));
    const owner = key({ maxSandboxes: 10 });
    const attempts = nodes.flatMap((quotas) => Array.from({ length: 12 }, () => create(quotas, owner)));
    const outcomes = await Promise.allSettled(attempts);
    const created = outcomes.filter((outcome) => outcome.status === "fulfilled");
    await Promise.all(nodes.map((quotas) => quotas.settled()));
    expect(created).toHaveLength(10);
    expect((await held()).toSorted()).toEqual(created.map(({ value }) => value).toSorted());
    expect(most).toBe(10);
    expect(outcomes.find((outcome) => outcome.status === "rejected")?.reason).toMatchObject(refused);
    const [first, second] = created;
    nodes[1]?.ended(payer, first?.value as SandboxId);
    nodes[2]?.ended(payer, second?.value as SandboxId);
    await Promise.all(nodes.map((quotas) => quotas.settled()));
    const again = await Promise.allSettled(nodes.flatMap((quotas) => [create(quotas, owner), create(quotas, owner)]));
    expect(again.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(most).toBe(10);
  });

  it.each([
    [{ maxMemoryMib: 512 }, 2],
    [{ maxVcpuCount: 3 }, 3],
    [{ maxSandboxes: 0 }, 0],
  ])("of %j allows %d sandboxes on two nodes together", async (quota, count) => {
    const nodes = [node("a"), node("b")];
    const outcomes = await Promise.allSettled(
      nodes.flatMap((quotas) => [1, 2, 3].map(() => create(quotas, key(quota)))),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(count);
  });

  it("is enforced when nodes reserve at the same moment", async () => {
    const nodes = ["a", "b", "c"].map((id) => node(id));
    const owner = key({ maxSandboxes: 2 });
    const outcomes = await Promise.allSettled(nodes.map((quotas) => quotas.reserve(owner, one)));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    expect(await held()).toHaveLength(2);
  });

  it("is available again after a failed creation", async () => {
    const [a, b] = [node("a"), node("b")];
    const owner = key({ maxSandboxes: 1 });
    const reservation = await a.reserve(owner, one);
    expect(await rejection(create(b, owner))).toMatchObject(refused);
    reservation[Symbol.dispose]();
    await a.settled();
    await create(b, owner);
  });

  it("counts a sandbox while it moves between nodes, and until it ends", async () => {
    const [a, b, c] = [node("a"), node("b"), node("c")];
    const owner = key({ maxSandboxes: 1 });
    const id = await create(a, owner);
    b.hold(payer, id, one);
    expect(await rejection(create(c, owner))).toMatchObject(refused);
    await b.settled();
    expect(await held()).toEqual([id]);
    b.ended(payer, id);
    await b.settled();
    await create(c, owner);
    expect(most).toBe(1);
  });

  it("counts sandboxes that existed before, even above the limit, and then refuses more", async () => {
    const a = node("a");
    const ids = [1, 2].map(() => createSandboxId());
    key({ maxSandboxes: 1 });
    for (const id of ids) a.hold(payer, id, one);
    await a.settled();
    expect((await held()).toSorted()).toEqual(ids.toSorted());
    expect(await rejection(create(node("b")))).toMatchObject(refused);
  });

  it("of a tenant is shared by its keys, on all nodes", async () => {
    key({}, { maxDiskMib: 250 });
    const [a, b] = [node("a"), node("b")];
    await create(a, { keyId: "00000001", tenant: "t" });
    await create(b, { keyId: "00000002", tenant: "t" });
    expect(await rejection(create(b, { keyId: "00000003", tenant: "t" }))).toMatchObject({
      ...refused,
      details: { quota: "maxDiskMib", used: 200, wanted: 100, limit: 250, tenant: "t" },
    });
    expect(await store.get("quotas/00000001.json"), "a key without a quota").toBeUndefined();
  });

  it("that a tenant refuses does not use up the key's", async () => {
    key({ maxSandboxes: 1 }, { maxDiskMib: 50 });
    const a = node("a");
    expect(await rejection(create(a))).toMatchObject(refused);
    await a.settled();
    key({ maxSandboxes: 1 });
    await create(a);
  });

  it("of checkpoints counts those of all nodes, and an increase that does not fit changes nothing", async () => {
    key({ maxCheckpoints: 3, maxCheckpointBytes: 1000 });
    const [a, b] = [node("a"), node("b")];
    const [first, second] = [await create(a), await create(b)];
    await a.resize(payer, first, { ...one, checkpoints: 2, checkpointBytes: 600 });
    const large = { ...one, checkpoints: 1, checkpointBytes: 401 };
    expect(await rejection(b.resize(payer, second, large))).toMatchObject({
      ...refused,
      details: { quota: "maxCheckpointBytes", used: 600, wanted: 401 },
    });
    await b.resize(payer, second, { ...one, checkpoints: 1, checkpointBytes: 400 });
    await a.resize(payer, first, { ...one, checkpoints: 1, checkpointBytes: 300 });
  });

  it("that comes after the sandboxes counts them, and those at rest until they no longer exist", async () => {
    const a = node("a");
    const [atRest, gone] = [createSandboxId(), createSandboxId()];
    existing.add(atRest);
    key({ maxSandboxes: 2 });
    const account = { kind: "key", name: keyId, quota: keyQuota } as const;
    a.holdAtRest(account, new Map([atRest, gone].map((id) => [id, one])));
    await a.settled();
    const id = await create(node("b"));
    expect((await held()).toSorted()).toEqual([atRest, id].toSorted());
    await a.reset(account);
    expect(await store.get(DOCUMENT)).toBeUndefined();
  });

  it("is not recorded for a key without one", async () => {
    const quotas = node("a");
    const id = await create(quotas, key({}));
    quotas.hold(payer, id, one);
    quotas.ended(payer, id);
    await quotas.settled();
    expect(await store.get(DOCUMENT)).toBeUndefined();
  });
});

describe("a dead node's share of a quota", () => {
  it("is released for failed creations, and still counts for sandboxes that exist", async () => {
    const [a, b] = [node("a"), node("b")];
    const owner = key({ maxSandboxes: 3 });
    const [kept, lost] = [await create(a, owner), await create(a, owner)];
    await a.reserve(owner, one);
    existing.delete(lost);
    expect(await rejection(create(b, owner)), "the node is alive").toMatchObject(refused);
    alive.delete("a");
    await create(b, owner);
    await create(b, owner);
    expect(await rejection(create(b, owner))).toMatchObject(refused);
    expect(await held()).toContain(kept);
    expect(most).toBe(3);
  });

  it("is released by the node itself after a restart", async () => {
    const owner = key({ maxSandboxes: 1 });
    await node("a").reserve(owner, one);
    await create(node("a"), owner);
  });

  it("is not used twice if the node only appeared dead", async () => {
    const [a, b] = [node("a"), node("b")];
    const owner = key({ maxSandboxes: 1 });
    const reservation = await a.reserve(owner, one);
    alive.delete("a");
    await create(b, owner);
    expect(await rejection(reservation.bind(createSandboxId()))).toMatchObject(refused);
    await a.settled();
    expect(await held()).toHaveLength(1);
    expect(most).toBe(1);
  });
});

describe("a quota in a failing store", () => {
  it("is not reduced by a creation whose response was lost", async () => {
    const a = node("a");
    const owner = key({ maxSandboxes: 1 });
    let isLost = true;
    fails = (operation) => {
      const isThis = operation === "put" && isLost;
      if (isThis) isLost = false;
      return isThis ? "after" : undefined;
    };
    expect(await rejection(create(a, owner))).toMatchObject({ reason: "store_unreachable" });
    await a.settled();
    await create(a, owner);
  });

  it("is released with retries when a sandbox ends, and the failure is reported once", async () => {
    const clock = new FakeClock();
    const a = node("a", { clock });
    const id = await create(a);
    fails = () => "before";
    a.ended(payer, id);
    for (let second = 0; second < 3; second++) await clock.advance(1000);
    await expect.poll(() => errors).toHaveLength(1);
    fails = () => undefined;
    const settled = a.settled();
    let isDone = false;
    settled.then(() => {
      isDone = true;
    });
    while (!isDone) await clock.advance(1000);
    expect(await held()).toEqual([]);
    expect(errors).toHaveLength(1);
  });
});
