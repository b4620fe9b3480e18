import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { mockNode } from "../testing/mock-node.ts";

const setUp = () => mockNode({ provider: new MockProvider() });

describe("a paused sandbox", () => {
  it("is woken by a caller who may use it, and stays paused for one who may only read", async () => {
    const { checkpoints, locator, owner, principal, get, kinds, create } = setUp();
    const { id } = await create();
    await checkpoints.pause(owner, id);
    const reader = principal({ scopes: ["read"] });
    await locator.claim(reader, id, { purpose: "use", readOnly: true });
    expect(get(id).state).toBe("paused");
    await locator.claim(owner, id, { purpose: "manage", readOnly: false });
    expect(get(id).state).toBe("paused");
    await locator.claim(owner, id, { purpose: "use", readOnly: false });
    expect(get(id).state).toBe("ready");
    expect(kinds()).toContain("sandbox.resumed");
  });

  it("that expired gets a whole lifetime when it is woken", async () => {
    const { checkpoints, create, clock, owner, get } = setUp();
    const { id } = await create({ ttlMs: 60_000, onExpiry: "pause" });
    await clock.advance(60_000);
    await expect.poll(() => get(id).state).toBe("paused");
    await checkpoints.resume(owner, id);
    await clock.advance(59_000);
    expect(get(id).state).toBe("ready");
    await clock.advance(1000);
    await expect.poll(() => get(id).state).toBe("paused");
  });
});

describe("a rollback without a checkpoint", () => {
  it("uses the newest checkpoint that a caller took, not a later automatic one", async () => {
    const { checkpoints, sandboxes, owner, create, open } = setUp();
    const { id } = await create();
    const write = async (text: string) => void (await open(id).exec({ command: `echo ${text} > file` }));
    await sandboxes.update(owner, id, { checkpointPolicy: { onIdle: true } });
    await write("good");
    await checkpoints.create(owner, id, {});
    await write("mistake");
    await checkpoints.createAutomatic(id);
    await checkpoints.rollback(owner, id, {});
    expect((await open(id).exec({ command: "cat file" })).stdout).toBe("good\n");
  });
});
