import type { SandboxError } from "@sandpiper/core";
import { FakeClock, MemoryStore } from "@sandpiper/core/testing";
import { nodeListSchema } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { NodeRegistry } from "./node-registry.ts";

let store: MemoryStore;
let clock: FakeClock;
let errors: SandboxError[];
let isStoreDown: boolean;

beforeEach(() => {
  isStoreDown = false;
  store = new MemoryStore({ fault: () => (isStoreDown ? { fail: "before" } : undefined) });
  clock = new FakeClock();
  errors = [];
});

const idOf = (number: number) => `00000000-0000-4000-8000-00000000000${number}`;

async function start(
  number: number,
  state = { isDraining: false, sandboxes: 0 },
  url: string | null = `http://node${number}:4747`,
) {
  const registry = new NodeRegistry({
    store,
    clock,
    node: { id: idOf(number), url, version: "1.2.3" },
    leaseMs: 15_000,
    maxSkewMs: 2000,
    describe: () => state,
    onError: (error) => errors.push(error),
  });
  await registry.start();
  return registry;
}

describe("the nodes of a cluster", () => {
  it("list each other with their state, and recognize their own entry", async () => {
    const one = await start(1, { isDraining: false, sandboxes: 3 });
    await start(2, { isDraining: true, sandboxes: 0 });
    const items = await one.list();
    expect(nodeListSchema.parse({ items }).items).toEqual(items);
    expect(items).toMatchObject([
      { id: idOf(1), url: "http://node1:4747", isAlive: true, isThisNode: true, isDraining: false, sandboxes: 3 },
      { id: idOf(2), isAlive: true, isThisNode: false, isDraining: true },
    ]);
  });

  it("list a node without a URL with null, because other nodes cannot reach it", async () => {
    const one = await start(1, undefined, null);
    const items = await one.list();
    expect(nodeListSchema.parse({ items }).items).toMatchObject([{ id: idOf(1), url: null, isAlive: true }]);
  });

  it("renew their entries at an interval, and on request", async () => {
    const state = { isDraining: false, sandboxes: 0 };
    const [one] = [await start(1, state), await start(2)];
    await clock.advance(60_000);
    expect((await one.list()).map(({ isAlive }) => isAlive)).toEqual([true, true]);
    state.sandboxes = 7;
    await one.announce();
    expect((await one.list())[0]?.sandboxes).toBe(7);
  });

  it("count as dead after a lease plus clock skew without a heartbeat, and are removed after an hour", async () => {
    const one = await start(1);
    const dead = { ...(await entryOf(1)), id: idOf(2), run: "x" };
    await store.put(`nodes/${idOf(2)}.json`, Buffer.from(JSON.stringify(dead)));
    await clock.advance(16_999);
    expect(await one.isAlive(idOf(2))).toBe(true);
    await clock.advance(1);
    expect(await one.isAlive(idOf(2))).toBe(false);
    expect((await one.list()).map(({ isAlive }) => isAlive)).toEqual([true, false]);
    await clock.advance(3_600_000);
    expect(await one.list()).toHaveLength(1);
    expect(await store.get(`nodes/${idOf(2)}.json`)).toBeUndefined();
  });

  it("are not listed after they stop", async () => {
    const [one, two] = [await start(1), await start(2)];
    await two.stop();
    await clock.advance(60_000);
    expect((await one.list()).map(({ id }) => id)).toEqual([idOf(1)]);
    await one.stop();
    expect(clock.pending).toBe(0);
  });

  it("continue their heartbeats after a failure of the store", async () => {
    const one = await start(1);
    isStoreDown = true;
    await clock.advance(5000);
    expect(errors).toMatchObject([{ reason: "store_unreachable" }]);
    isStoreDown = false;
    await clock.advance(60_000);
    expect(await one.isAlive(idOf(1))).toBe(true);
  });

  it("report another node with their id", async () => {
    await start(1);
    expect(errors).toEqual([]);
    const copy = await start(1);
    await clock.advance(5000);
    expect(errors[0]).toMatchObject({ reason: "node_id_taken" });
    await copy.stop();
  });
});

async function entryOf(number: number): Promise<object> {
  return JSON.parse(Buffer.from((await store.get(`nodes/${idOf(number)}.json`))?.bytes ?? []).toString());
}
