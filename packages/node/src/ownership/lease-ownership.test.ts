import { FencedStates, Leases } from "@sandpiper/core";
import { FakeClock, MemoryStore } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import type { SandboxRecord } from "../records/sandbox-record.ts";
import { ClusterCustody } from "./lease-ownership.ts";

const clock = new FakeClock();
const onError = () => {};

/** A node, as far as it holds sandboxes. */
function startNode(store: MemoryStore, name: string) {
  const wanted: SandboxId[] = [];
  const node = { id: name, url: `http://${name}` };
  const timing = { durationMs: 15_000, maxSkewMs: 0, checkpointBudgetMs: 1000 };
  const leases = new Leases({ ...timing, store, node, clock, nudge: async () => {}, onError });
  const states = new FencedStates({ store, clock, leases, onError });
  const custody = new ClusterCustody({
    leases,
    states,
    requirements: async () => ({}),
    onWanted: (id) => wanted.push(id),
    onLost: () => {},
    onDeadline: () => {},
  });
  return { leases, custody, wanted };
}

async function begin({ custody }: ReturnType<typeof startNode>) {
  const id = crypto.randomUUID() as SandboxId;
  const createdAt = clock.now();
  const record = { id, tenant: "t", keyId: "k", createdAt, expiresAt: null, endedAt: null } as unknown as SandboxRecord;
  return { id, epoch: await custody.begin(record) };
}

describe("a sandbox with an attached client", () => {
  it("is not given to a waiter who registered before the lock told of the client", async () => {
    const store = new MemoryStore();
    const [a, b] = [startNode(store, "a"), startNode(store, "b")];
    const { id } = await begin(a);
    const waiting = b.leases.wait(id, { takeover: false });
    waiting.catch(() => {});
    await expect.poll(async () => (await a.leases.read(id))?.waiter).not.toBeNull();
    a.custody.setAttached(id, true);
    a.leases.poke(id);
    await clock.advance(1000);
    await expect(waiting).rejects.toMatchObject({ reason: "sandbox_in_use" });
    expect(a.wanted).toEqual([]);
  });

  it("is given to a waiter who takes over", async () => {
    const store = new MemoryStore();
    const [a, b] = [startNode(store, "a"), startNode(store, "b")];
    const { id } = await begin(a);
    await a.custody.setAttached(id, true);
    const waiting = b.leases.wait(id, { takeover: true });
    await expect.poll(async () => (await a.leases.read(id))?.waiter).not.toBeNull();
    a.leases.poke(id);
    await expect.poll(() => a.wanted).toEqual([id]);
    await a.custody.release(id);
    await clock.advance(1000);
    expect((await waiting).lease.isHeld).toBe(true);
  });

  it("has none any more when its node was started again", async () => {
    const store = new MemoryStore();
    const before = startNode(store, "a");
    const { id, epoch } = await begin(before);
    await before.custody.setAttached(id, true);
    before.leases.dispose();
    const { custody, leases } = startNode(store, "a");
    expect(await custody.resume(id, epoch)).toBe(true);
    expect(await leases.read(id)).toMatchObject({ isLive: true, isAttached: false });
  });
});
