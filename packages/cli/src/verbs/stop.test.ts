import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
beforeEach(async () => {
  for await (const sandbox of node.client.sandboxes.list()) await sandbox.destroy();
  await node.client.sandboxes.create({ name: "one" });
  await node.client.sandboxes.create({ name: "two" });
});
afterAll(() => node[Symbol.asyncDispose]());

const states = () => node.memory.sandboxes.map(({ state, stoppedAt }) => [state, stoppedAt !== null]);

describe("sandpiper stop and start", () => {
  it("stop and start several sandboxes at once", async () => {
    expect(await node.run("stop", "--timeout", "5s", "one", "two")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    expect(states()).toEqual([
      ["stopped", true],
      ["stopped", true],
    ]);
    expect(await node.run("start", "one", "two")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    expect(states()).toEqual([
      ["ready", false],
      ["ready", false],
    ]);
  });

  it("exit with 2 for an invalid time limit, and without a sandbox", async () => {
    expect(await node.run("stop", "--timeout", "soon", "one")).toMatchObject({ stdout: "", exitCode: 2 });
    expect(await node.run("start")).toMatchObject({ stdout: "", exitCode: 2 });
  });
});

describe("sandpiper events --replay", () => {
  it("prints the state of each sandbox, and cannot be combined with --after", async () => {
    await node.run("stop", "one");
    const { stdout } = await node.run("events", "--replay");
    const shown = JSON.parse(stdout).map(({ kind, details }: { kind: string; details: { state: string } }) => [
      kind,
      details.state,
    ]);
    expect(shown).toEqual([
      ["sandbox.state", "stopped"],
      ["sandbox.state", "ready"],
    ]);
    expect(await node.run("events", "--replay", "--after", "1")).toMatchObject({ stdout: "", exitCode: 2 });
  });
});
