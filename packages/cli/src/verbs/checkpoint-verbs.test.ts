import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
let id: string;
beforeEach(async () => {
  for await (const sandbox of node.client.sandboxes.list()) await sandbox.destroy();
  ({ id } = await node.client.sandboxes.create({ name: "work", labels: { of: "original" } }));
  write("one");
});
afterAll(() => node[Symbol.asyncDispose]());

const path = "/home/user/notes";
const write = (text: string) => node.memory.files(id).set(path, new TextEncoder().encode(text));
const read = (sandbox: string) => new TextDecoder().decode(node.memory.files(sandbox).get(path));
const stateOf = (sandbox: string) => node.memory.sandboxes.find((each) => each.id === sandbox)?.state;

async function line(...argv: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await node.run(...argv);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout.trim();
}

async function json(...argv: string[]) {
  return JSON.parse(await line(...argv));
}

describe("sandpiper checkpoint", () => {
  it("prints the ID, or with --json the checkpoint", async () => {
    const first = await line("checkpoint", "work", "--name", "before", "--ttl", "1h");
    const second = await json("checkpoint", "work", "--json");
    const listed = await json("checkpoints", "work");
    expect(listed).toEqual([second, expect.objectContaining({ id: first, name: "before", sandboxId: id })]);
    expect(Date.parse(listed[1].expiresAt) - Date.parse(listed[1].createdAt)).toBe(3_600_000);
  });

  it("stops the sandbox and deletes older checkpoints when asked", async () => {
    await line("checkpoint", "work");
    const kept = await line("checkpoint", "work", "--stop", "--keep-last", "1");
    expect((await json("checkpoints", "work")).map((each: { id: string }) => each.id)).toEqual([kept]);
    expect(stateOf(id)).toBe("stopped");
  });

  it.each([
    ["--ttl", "soon"],
    ["--keep-last", "0"],
  ])("exits with 2 for %s %s", async (...wrong) => {
    expect(await node.run("checkpoint", "work", ...wrong)).toMatchObject({ stdout: "", exitCode: 2 });
  });
});

describe("sandpiper checkpoints", () => {
  it("deletes checkpoints by ID, beginning of ID or name, and none when one is not found", async () => {
    const first = await line("checkpoint", "work");
    await line("checkpoint", "work", "--name", "second");
    const refused = await node.run("checkpoints", "work", "--delete", "second", "--delete", "third");
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('checkpoint "third" not found') });
    expect(refused.stderr).toContain("sandpiper checkpoints SANDBOX");
    expect(await json("checkpoints", "work")).toHaveLength(2);
    expect(await line("checkpoints", "work", "--delete", first.slice(0, 13), "--delete", "second")).toBe("");
    expect(await json("checkpoints", "work")).toEqual([]);
  });
});

describe("sandpiper restore", () => {
  it("creates a sandbox from a whole ID, or from SANDBOX:CHECKPOINT", async () => {
    const checkpoint = await line("checkpoint", "work", "--name", "before");
    write("two");
    for (const text of [checkpoint, "work:before", `${id.slice(0, 8)}:${checkpoint.slice(0, 8)}`]) {
      const made = await json("restore", text, "--name", "again", "--json");
      expect(made).toMatchObject({ name: "again" });
      expect([made.id === id, read(made.id)]).toEqual([false, "one"]);
    }
    expect(read(id)).toBe("two");
  });

  it("refuses the name of a checkpoint without its sandbox, with exit code 2", async () => {
    expect(await node.run("restore", "before")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("use the whole ID, or SANDBOX:before"),
    });
  });
});

describe("sandpiper fork", () => {
  it("prints one ID per line", async () => {
    const forks = (await line("fork", "work", "--count", "3", "--name", "copy")).split("\n");
    expect(new Set([id, ...forks]).size).toBe(4);
    for (const fork of forks) expect(read(fork)).toBe("one");
  });

  it("starts at a checkpoint and sets labels when these are given", async () => {
    const checkpoint = await line("checkpoint", "work");
    write("two");
    const from = ["--checkpoint", checkpoint.slice(0, 8)];
    const [fork] = await json("fork", "work", ...from, "--label", "of=fork", "--json");
    expect([read(fork.id), fork.labels]).toEqual(["one", { of: "fork" }]);
    const [now] = await json("fork", "work", "--json");
    expect([read(now.id), now.labels]).toEqual(["two", { of: "original" }]);
  });
});

describe("sandpiper pause and resume", () => {
  it("pause and resume several sandboxes at once", async () => {
    const { id: other } = await node.client.sandboxes.create({ name: "other" });
    const states = () => [id, other].map(stateOf);
    expect(await line("pause", "work", "other")).toBe("");
    expect(states()).toEqual(["paused", "paused"]);
    expect(await line("resume", "work", other)).toBe("");
    expect(states()).toEqual(["ready", "ready"]);
  });
});

describe("sandpiper rollback", () => {
  it("resets to the newest or the named checkpoint, and prints its ID", async () => {
    const first = await line("checkpoint", "work", "--name", "first");
    write("two");
    const second = await line("checkpoint", "work");
    write("three");
    expect(await line("rollback", "work")).toBe(second);
    expect(read(id)).toBe("two");
    expect(await json("rollback", "work", "first", "--json")).toMatchObject({
      id,
      rolledBackTo: { checkpoint: first },
    });
    expect(read(id)).toBe("one");
  });

  it("exits with 1 when there is no checkpoint", async () => {
    expect(await node.run("rollback", "work")).toMatchObject({ stdout: "", exitCode: 1 });
  });
});

describe("sandpiper nodes and node drain", () => {
  it("list the nodes, and drain the node that answers", async () => {
    expect(await json("nodes")).toMatchObject([
      { isThisNode: true, url: "http://127.0.0.1:4747" },
      { isThisNode: false, url: null },
    ]);
    expect(await line("node", "drain")).toBe("");
    expect(await line("node", "drain", "--deadline", "30")).toBe("");
    expect(node.drains).toEqual([{}, { deadlineMs: 30_000 }]);
  });
});
