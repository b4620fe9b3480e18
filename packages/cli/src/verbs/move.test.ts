import { afterAll, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
await node.client.sandboxes.create({ name: "work" });
afterAll(() => node[Symbol.asyncDispose]());

describe("sandpiper move", () => {
  it("exits with 1 on a standalone node, and says why", async () => {
    const { stdout, stderr, exitCode } = await node.run("move", "work");
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/standalone[\s\S]*shared store/);
  });

  it("exits with 1 for an unknown sandbox, and with 2 without one", async () => {
    expect(await node.run("move", "other")).toMatchObject({ stdout: "", exitCode: 1 });
    expect(await node.run("move")).toMatchObject({ stdout: "", exitCode: 2 });
  });
});
