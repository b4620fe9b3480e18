import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { owner, ShakyStore, startShakyNode } from "./testing/shaky-node.ts";

const LARGE_BYTES = 70 * 1024 * 1024;
const SAVE_MS = 2000;

function start(shared: ShakyStore, name: string) {
  const node = startShakyNode(shared, name, new MockProvider({ clock: shared.clock }));
  node.handoffs?.open();
  return node;
}

interface Trouble {
  /** Nothing can be read while the sandbox still runs. */
  readonly isUnreadable?: boolean;
  /** The owner is never told that it was fetched. */
  readonly isSilent?: boolean;
}

/** Hands a large sandbox from one node to another, and counts what was read of it while it ran and afterwards. */
async function handOff({ isUnreadable = false, isSilent = false }: Trouble = {}) {
  const shared = new ShakyStore();
  await using a = start(shared, "a");
  await using b = start(shared, "b");
  const { id } = await a.sandboxes.create(owner, { provider: "mock" });
  const content = randomBytes(LARGE_BYTES);
  await a.registry.instance(id).sandbox.writeFile("/large", content);
  a.provider.faults.checkpointDelayMs = SAVE_MS;
  if (isSilent) shared.nudged.clear();
  const reads = { before: 0, after: 0 };
  shared.fault = ({ operation, key }) => {
    if (operation !== "get" || !key.startsWith("chunks/")) return undefined;
    const isRunning = a.registry.running(id) !== undefined;
    reads[isRunning ? "before" : "after"] += 1;
    return isRunning && isUnreadable ? { fail: "before" } : undefined;
  };
  let isBrought = false;
  const bringing = b.locator.bring(owner, id, { takeover: false }).finally(() => {
    isBrought = true;
  });
  while (!isBrought) {
    await shared.clock.advance(10);
    await setImmediate();
  }
  expect(await bringing).toMatchObject({ state: "ready", rolledBackTo: null });
  const arrived = await b.registry.instance(id).sandbox.readFile("/large");
  expect(Buffer.compare(arrived, content)).toBe(0);
  return reads;
}

describe("a large sandbox that is handed over", () => {
  it("is fetched while it still runs, and stands still only for what has changed since", async () => {
    const reads = await handOff();
    expect(reads.before).toBeGreaterThan(100);
    expect(reads.after).toBeLessThan(10);
  });

  it("arrives whole although it could not be fetched before", async () => {
    expect((await handOff({ isUnreadable: true })).after).toBeGreaterThan(100);
  });

  it("is not kept by an owner that is never told", async () => {
    expect((await handOff({ isSilent: true })).before).toBeGreaterThan(100);
  });
});
