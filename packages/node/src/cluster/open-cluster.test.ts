import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { MemoryStore } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NO_USAGE } from "../auth/quota.ts";
import { parseNodeConfig } from "../config/load-node-config.ts";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openCluster } from "./open-cluster.ts";

let undo: AsyncDisposableStack;
let store: MemoryStore;

beforeEach(() => {
  undo = new AsyncDisposableStack();
  store = new MemoryStore();
});

afterEach(() => undo.disposeAsync());

async function node(port: number) {
  const home = new ScratchHome().path;
  const config = parseNodeConfig({ home, port, clusterSecret: "a secret for this test" });
  const cluster = undo.use(
    await openCluster({
      config,
      store,
      version: "1.2.3",
      ownKeys: { keys: [], tenants: new Map() },
      clock: systemClock,
      describe: () => ({ isDraining: false, sandboxes: 0 }),
      onError: (error) => {
        throw error;
      },
    }),
  );
  await cluster.registry.start();
  undo.defer(() => cluster.registry.stop());
  return { ...cluster, home };
}

describe("nodes on one store", () => {
  it("share their keys and sandbox tokens, and verify each other's requests", async () => {
    const [one, two] = [await node(4747), await node(4748)];
    expect((await two.registry.list()).map(({ url }) => url).toSorted()).toEqual([
      "http://127.0.0.1:4747",
      "http://127.0.0.1:4748",
    ]);
    const first = readFileSync(join(one.home, "api-key"), "utf8").trim();
    expect(two.keys.verify(first)).toMatchObject({ scopes: ["admin"] });
    const id = createSandboxId();
    expect(two.tokens.verify(one.tokens.tokenOf(id))).toBe(id);
    const request = { method: "GET", path: "/v1/socket" };
    expect(two.proof.verify(one.proof.sign(request, two.node.url ?? ""), request)).toBe(one.node.id);
  });

  it("enforce a key's quota across the cluster", async () => {
    const [one, two] = [await node(4747), await node(4748)];
    const { key } = await one.keys.create({ name: "ci", quota: { maxSandboxes: 1 } });
    await two.keys.learn(key);
    const owner = (keys: typeof one.keys) => {
      const { id: keyId, ...record } = keys.verify(key) ?? {};
      return { kind: "key", keyId, ...record } as unknown as Parameters<typeof one.quotas.reserve>[0];
    };
    const wanted = { ...NO_USAGE, sandboxes: 1, memoryMib: 1, vcpuCount: 1 };
    using _ = await one.quotas.reserve(owner(one.keys), wanted);
    await expect(two.quotas.reserve(owner(two.keys), wanted)).rejects.toMatchObject({ reason: "quota_exceeded" });
  });
});
