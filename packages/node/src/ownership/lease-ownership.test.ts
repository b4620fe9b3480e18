import { FencedStates, Leases } from "@sandpiper/core";
import { FakeClock, MemoryStore } from "@sandpiper/core/testing";
import type { SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { sandboxRecord } from "../testing/sandbox-record.ts";
import { LeaseOwnership } from "./lease-ownership.ts";

const clock = new FakeClock();
const onError = () => {};

/** The parts of a node that hold leases. */
function startNode(store: MemoryStore, name: string) {
  const wanted: SandboxId[] = [];
  const node = { id: name, url: `http://${name}` };
  const timing = { durationMs: 15_000, maxSkewMs: 0, checkpointBudgetMs: 1000 };
  const leases = new Leases({ ...timing, store, node, clock, nudge: async () => {}, onError });
  const states = new FencedStates({ store, clock, leases, onError });
  const ownership = new LeaseOwnership({ leases, states, onDeadline: () => {} });
  ownership.onWanted((id) => wanted.push(id));
  return { leases, ownership, wanted };
}

async function begin({ ownership }: ReturnType<typeof startNode>) {
  const record = sandboxRecord();
  return { id: record.id, epoch: await ownership.begin(record, async () => ({})) };
}

describe("a sandbox with an attached client", () => {
  it("is refused to a waiter that registered before the lock showed the client", async () => {
    const store = new MemoryStore();
    const [a, b] = [startNode(store, "a"), startNode(store, "b")];
    const { id } = await begin(a);
    const waiting = b.leases.wait(id, { takeover: false });
    waiting.catch(() => {});
    await expect.poll(async () => (await a.leases.read(id))?.waiter).not.toBeNull();
    a.ownership.setAttached(id, true);
    a.leases.poke(id);
    await clock.advance(1000);
    await expect(waiting).rejects.toMatchObject({ reason: "sandbox_in_use" });
    expect(a.wanted).toEqual([]);
  });

  it("is released to a waiter with takeover", async () => {
    const store = new MemoryStore();
    const [a, b] = [startNode(store, "a"), startNode(store, "b")];
    const { id } = await begin(a);
    await a.ownership.setAttached(id, true);
    const waiting = b.leases.wait(id, { takeover: true });
    await expect.poll(async () => (await a.leases.read(id))?.waiter).not.toBeNull();
    a.leases.poke(id);
    await expect.poll(() => a.wanted).toEqual([id]);
    await a.ownership.release(id);
    await clock.advance(1000);
    expect((await waiting).lease.isHeld).toBe(true);
  });

  it("has no attached client after a restart of its node", async () => {
    const store = new MemoryStore();
    const before = startNode(store, "a");
    const { id, epoch } = await begin(before);
    await before.ownership.setAttached(id, true);
    before.leases.dispose();
    const { ownership, leases } = startNode(store, "a");
    expect(await ownership.resume(id, epoch)).toBe(true);
    expect(await leases.read(id)).toMatchObject({ isLive: true, isAttached: false });
  });
});

describe("a sandbox whose state cannot be read", () => {
  const damage = async (store: MemoryStore, id: SandboxId) => {
    const key = `states/${id}.state`;
    const before = await store.get(key);
    await store.put(key, new TextEncoder().encode("damaged"));
    return async () => void (await store.put(key, before?.bytes ?? new Uint8Array()));
  };

  it("can be taken by any node after its repair, although its node had resumed the lease", async () => {
    const store = new MemoryStore();
    const before = startNode(store, "a");
    const { id, epoch } = await begin(before);
    before.leases.dispose();
    const [a, b] = [startNode(store, "a"), startNode(store, "b")];
    const repair = await damage(store, id);
    await expect(a.ownership.resume(id, epoch)).rejects.toMatchObject({ code: "data_loss" });
    await repair();
    await clock.advance(20_000);
    expect(await b.leases.acquire(id)).toHaveProperty("lease");
  });

  it("can be taken at once by the node that could not read it", async () => {
    const store = new MemoryStore();
    const before = startNode(store, "a");
    const { id, epoch } = await begin(before);
    before.leases.dispose();
    const { ownership, leases } = startNode(store, "a");
    const repair = await damage(store, id);
    await expect(ownership.resume(id, epoch)).rejects.toMatchObject({ code: "data_loss" });
    await repair();
    expect(await leases.acquire(id)).toHaveProperty("lease");
  });

  it("can be acquired again if its lease was new", async () => {
    const store = new MemoryStore();
    const { ownership, leases } = startNode(store, "a");
    const record = sandboxRecord();
    await damage(store, record.id);
    await expect(ownership.begin(record, async () => ({}))).rejects.toMatchObject({ code: "data_loss" });
    await clock.advance(20_000);
    expect(await leases.acquire(record.id)).toHaveProperty("lease");
  });
});
