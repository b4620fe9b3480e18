import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startMemoryNode } from "../testing/memory-node.ts";

const node = await startMemoryNode();
let id: string;
beforeAll(async () => {
  ({ id } = await node.client.sandboxes.create({ name: "work" }));
});
afterAll(() => node[Symbol.asyncDispose]());

describe("sandpiper url", () => {
  it("prints a link, or a public URL", async () => {
    const { stdout, exitCode } = await node.run("url", "work", "8000", "--path", "/docs");
    expect([exitCode, stdout]).toEqual([0, `http://8000-${id}.localhost/docs?sandpiper_link=memory\n`]);
    const open = await node.run("url", "work", "8000", "--public", "--json");
    expect(JSON.parse(open.stdout)).toEqual({ port: 8000, url: `http://8000-${id}.localhost/` });
    expect(await node.run("url", "work", "--revoke")).toEqual({ stdout: "", stderr: "", exitCode: 0 });
  });

  it.each([
    ["no port", ["work"]],
    ["a port that is none", ["work", "0"]],
    ["two kinds of access", ["work", "80", "--public", "--private"]],
    ["a port to revoke", ["work", "80", "--revoke"]],
  ])("refuses %s", async (_, argv) => {
    expect(await node.run("url", ...argv)).toMatchObject({ stdout: "", exitCode: 2 });
  });
});

describe("sandpiper ports", () => {
  it("lists the ports of a sandbox", async () => {
    expect(await node.run("ports", "work")).toEqual({ stdout: "[]\n", stderr: "", exitCode: 0 });
  });
});

describe("sandpiper forward", () => {
  it("refuses ports that are none, and unknown sandboxes", async () => {
    expect(await node.run("forward", "work", "99999")).toMatchObject({ stdout: "", exitCode: 2 });
    expect(await node.run("forward", "other", "80:0")).toMatchObject({ stdout: "", exitCode: 1 });
    expect(await node.run("forward", "work")).toMatchObject({ exitCode: 2 });
  });
});
