import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
let id: string;
beforeEach(async () => {
  for await (const sandbox of node.client.sandboxes.list()) await sandbox.destroy();
  ({ id } = await node.client.sandboxes.create({ name: "work" }));
});
afterAll(() => node[Symbol.asyncDispose]());

describe("sandpiper create", () => {
  it("creates a container with the options of the command line", async () => {
    const argv = ["--provider", "docker", "--image", "node:24", "--network", "bridge", "--publish", "3000"];
    const { stdout, exitCode } = await node.run("create", ...argv, "--read-only", "--json");
    expect([exitCode, JSON.parse(stdout)]).toMatchObject([
      0,
      {
        provider: "docker",
        image: "node:24",
        container: { network: "bridge", ports: [3000], isRootReadOnly: true },
      },
    ]);
    const plain = await node.run("create", "--image", "python", "--json");
    expect(JSON.parse(plain.stdout)).toMatchObject({ image: "python", container: null });
  });
});

describe("sandpiper get", () => {
  it("shows a sandbox without its token", async () => {
    const { stdout, exitCode } = await node.run("get", "work");
    const shown = JSON.parse(stdout);
    expect([exitCode, shown]).toMatchObject([0, { id, name: "work", addresses: {} }]);
    expect(shown).not.toHaveProperty("token");
  });
});

describe("sandpiper rebuild", () => {
  it("prints nothing, or with --json the sandbox", async () => {
    expect(await node.run("rebuild", "work")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    const { stdout } = await node.run("rebuild", id.slice(0, 8), "--json");
    expect(JSON.parse(stdout)).toMatchObject({ id, state: "ready" });
    expect(node.memory.sandboxes).toHaveLength(1);
  });

  it("exits with 1 for an unknown sandbox, and with 2 without one", async () => {
    expect(await node.run("rebuild", "other")).toMatchObject({ stdout: "", exitCode: 1 });
    expect(await node.run("rebuild")).toMatchObject({ stdout: "", exitCode: 2 });
  });
});

describe("sandpiper volumes", () => {
  it("lists and removes what rm --keep-volumes left", async () => {
    expect(await node.run("rm", "--keep-volumes", "--quiet", "work")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    const name = `sandpiper-data-${id}`;
    const { stdout } = await node.run("volumes", "ls", "--json");
    expect(JSON.parse(stdout)).toMatchObject([{ name, sandbox: id, path: "/.data", usedBy: [] }]);
    expect(await node.run("volumes", "rm", name)).toEqual({ stdout: "", stderr: "", exitCode: 0 });
    expect(await node.run("volumes", "rm", name)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(name) });
    expect(await node.run("volumes", "ls")).toEqual({ stdout: "[]\n", stderr: "", exitCode: 0 });
  });

  it("has nothing to list after a plain rm", async () => {
    await node.run("rm", "--quiet", "work");
    expect((await node.run("volumes", "ls", "--json")).stdout).toBe("[]\n");
  });
});

describe("sandpiper caches", () => {
  it("are listed as JSON", async () => {
    expect(await node.run("caches", "ls")).toEqual({ stdout: "[]\n", stderr: "", exitCode: 0 });
  });

  it.each(["npm", "a/b/c", "/npm"])("clear exits with 2 for %s, which is not PROJECT/NAME", async (text) => {
    const { exitCode, stderr } = await node.run("caches", "clear", text);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("default/npm")]);
  });
});

describe("sandpiper machines", () => {
  it("are listed as JSON", async () => {
    expect(await node.run("machines", "ls")).toEqual({ stdout: "[]\n", stderr: "", exitCode: 0 });
  });

  it.each(["inspect", "stop"])("%s exits with 1 for a machine that does not exist", async (action) => {
    const { exitCode, stderr } = await node.run("machines", action, "shop");
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("sandpiper machines ls")]);
  });
});
