import { type Clock, systemClock } from "@sandpiper/core";
import { FakeClock, MemoryStore, rejection } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { SharedNames } from "./shared-names.ts";

let store: MemoryStore;
let clock: FakeClock;
let named: Map<SandboxId, string>;

beforeEach(() => {
  store = new MemoryStore();
  clock = new FakeClock();
  named = new Map();
});

const node = (own: Clock = clock) =>
  new SharedNames({ store, clock: own, isNamed: async (id, name) => named.get(id) === name });
const sandbox = (name = "build", tenant = "a") => ({ tenant, name, id: createSandboxId() });

describe("names in a cluster", () => {
  it("refuses a name that a sandbox on another node has, and names that sandbox", async () => {
    const first = sandbox();
    await node().take(first);
    named.set(first.id, "build");
    clock.run(3_600_000);
    expect(await rejection(node().take(sandbox()))).toMatchObject({
      code: "already_exists",
      reason: "name_in_use",
      details: { name: "build", sandbox: first.id },
    });
  });

  it("allows the same name to two tenants, and a sandbox its own name again", async () => {
    const first = sandbox();
    await node().take(first);
    await node().take(first);
    await node().take(sandbox("build", "b"));
  });

  it("gives a name to exactly one of many concurrent creations", async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => node(systemClock).take(sandbox())));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  it("frees the name of a destroyed sandbox, and only that sandbox can free it", async () => {
    const first = sandbox();
    await node().take(first);
    await node().release(sandbox());
    expect(await rejection(node().take(sandbox()))).toMatchObject({ reason: "name_in_use" });
    await node().release(first);
    await node().take(sandbox());
  });

  it("frees the name of a sandbox that was lost before it was created, after half a minute", async () => {
    await node().take(sandbox());
    clock.run(29_999);
    expect(await rejection(node().take(sandbox()))).toMatchObject({ reason: "name_in_use" });
    clock.run(1);
    await node().take(sandbox());
  });
});
