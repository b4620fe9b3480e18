import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findNode, requireNode } from "./find-node.ts";

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

describe("a verb that works without a node", () => {
  it("uses a node that runs", async () => {
    expect(await findNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: port })).toBeDefined();
  });

  it("works without one when none runs, or when the user has no key", async () => {
    expect(await findNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: "1" })).toBeUndefined();
    expect(await findNode({ SANDPIPER_HOME: join(home, "other"), SANDPIPER_PORT: port })).toBeUndefined();
  });

  it("fails when the node that SANDPIPER_URL names does not run", async () => {
    const message = `no node is running at ${nowhere}: start one there, or correct SANDPIPER_URL`;
    await expect(findNode({ SANDPIPER_HOME: home, SANDPIPER_URL: nowhere })).rejects.toThrow(message);
  });
});

describe("a verb that needs a node", () => {
  it("fails with one line that tells how to start one", async () => {
    await expect(requireNode({ SANDPIPER_HOME: home, SANDPIPER_PORT: "1" })).rejects.toMatchObject({
      reason: "no_node",
      message: 'no node is running at http://127.0.0.1:1: start one with "sandpiper up"',
      hint: undefined,
    });
  });

  it("fails when it has no key", async () => {
    const env = { SANDPIPER_HOME: join(home, "other"), SANDPIPER_PORT: port };
    await expect(requireNode(env)).rejects.toMatchObject({ code: "unauthenticated", reason: "no_credential" });
  });
});
