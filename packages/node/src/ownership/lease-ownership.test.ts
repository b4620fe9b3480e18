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
