import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findNode, requireNode } from "./find-node.ts";
import { nodeAddress } from "./node-address.ts";

const server = createServer((_, response) => response.end("{}"));
let home: string;
let port: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "sandpiper-target-"));
  await writeFile(join(home, "api-key"), "spk_from_file\n");
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = String((server.address() as AddressInfo).port);
});
afterAll(async () => {
  server.close();
  await rm(home, { recursive: true, force: true });
});

/** Nothing listens on port 1. */
const nowhere = "http://127.0.0.1:1";

describe("where a node is looked for", () => {
  it("is SANDPIPER_URL with SANDPIPER_API_KEY, when they are set", async () => {
    const env = { SANDPIPER_URL: "https://node.example/", SANDPIPER_API_KEY: "spk_x", SANDPIPER_HOME: home };
    expect(await nodeAddress(env)).toMatchObject({ url: "https://node.example", apiKey: "spk_x", isExplicit: true });
  });

  it("is otherwise this machine, with the key of its state directory", async () => {
    expect(await nodeAddress({ SANDPIPER_HOME: home })).toEqual({
      url: "http://127.0.0.1:4747",
      apiKey: "spk_from_file",
      isExplicit: false,
      keyFile: join(home, "api-key"),
    });
    expect((await nodeAddress({ SANDPIPER_HOME: home, SANDPIPER_PORT: "5000" })).url).toBe("http://127.0.0.1:5000");
  });

  it.each([
    [{ SANDPIPER_PORT: "http" }, 'SANDPIPER_PORT is "http"'],
    [{ SANDPIPER_PORT: "70000" }, 'SANDPIPER_PORT is "70000"'],
    [{ SANDPIPER_URL: "127.0.0.1:4747" }, 'SANDPIPER_URL is "127.0.0.1:4747"'],
  ])("is refused when it is wrong: %j", async (env, message) => {
    await expect(nodeAddress(env)).rejects.toThrow(message);
  });
});

describe("a verb that can do without a node", () => {
  it("takes the one that runs", async () => {
    expect(await findNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: port })).toBeDefined();
  });

  it("does without where none runs, or none of this user's", async () => {
    expect(await findNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: "1" })).toBeUndefined();
    expect(await findNode({ SANDPIPER_HOME: join(home, "other"), SANDPIPER_PORT: port })).toBeUndefined();
  });

  it("does not do without the one that the user named", async () => {
    const message = `no node runs at ${nowhere}; start one there, or correct SANDPIPER_URL`;
    await expect(findNode({ SANDPIPER_HOME: home, SANDPIPER_URL: nowhere })).rejects.toThrow(message);
  });
});

describe("a verb that needs a node", () => {
  it("says in one line how to start one", async () => {
    await expect(requireNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: "1" })).rejects.toMatchObject({
      reason: "no_node",
      message: "no node runs at http://127.0.0.1:1; start one with: sandpiper up",
      hint: undefined,
    });
  });

  it("says which key is missing", async () => {
    const env = { SANDPIPER_HOME: join(home, "other"), SANDPIPER_PORT: port };
    await expect(requireNode(env)).rejects.toMatchObject({ code: "unauthenticated", reason: "no_api_key" });
  });
});
