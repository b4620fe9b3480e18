import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { owner, ShakyStore, startShakyNode } from "./testing/shaky-node.ts";

const start = (shared: ShakyStore, name: string) =>
  startShakyNode(shared, name, new MockProvider({ clock: shared.clock }));

const LARGE_BYTES = 70 * 1024 * 1024;
const SAVE_MS = 2000;

interface Faults {
  /** Reading chunks fails while the sandbox still runs. */
  readonly isUnreadable?: boolean;
  /** The owner receives no nudge after the prefetch. */
  readonly isSilent?: boolean;
}

/** Hands off a large sandbox, and counts the chunks that are read while it runs and after it stopped. */
async function handOff({ isUnreadable = false, isSilent = false }: Faults = {}) {
  const shared = new ShakyStore();
  const a = start(shared, "a");
  const b = start(shared, "b");
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
  let isDone = false;
  const handoff = b.locator.bring(owner, id, { takeover: false }).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await shared.clock.advance(10);
    await setImmediate();
  }
  expect(await handoff).toMatchObject({ state: "ready", rolledBackTo: null });
  const arrived = await b.registry.instance(id).sandbox.readFile("/large");
  expect(Buffer.compare(arrived, content)).toBe(0);
  return reads;
}

describe("the handoff of a large sandbox", () => {
  it("downloads most chunks while the sandbox still runs, and only changed ones after it stopped", async () => {
    const reads = await handOff();
    expect(reads.before).toBeGreaterThan(100);
    expect(reads.after).toBeLessThan(10);
  });

  it("is complete even if the prefetch fails", async () => {
    expect((await handOff({ isUnreadable: true })).after).toBeGreaterThan(100);
  });

  it("completes even if the owner never receives the nudge", async () => {
    expect((await handOff({ isSilent: true })).before).toBeGreaterThan(100);
  });
});
