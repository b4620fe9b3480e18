import { SandboxError } from "@sandpiper/core";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type StoreNode, StoreNodes } from "./testing/store-nodes.ts";

let nodes: StoreNodes;
let node: StoreNode;
let provider: MockProvider;
let key: string;

beforeEach(async () => {
  nodes = new StoreNodes();
  provider = new MockProvider();
  node = await nodes.start("a", provider);
  const created = await node.clusterKeys.create({ name: "small", tenant: "small", quota: { maxSandboxes: 1 } });
  key = created.key;
});
afterEach(() => nodes[Symbol.asyncDispose]());

const create = () => node.request("POST", "/v1/sandboxes", { json: { provider: "mock", onFailure: "keep" }, as: key });

describe("the quota of a key in a cluster", () => {
  it("does not count sandboxes that failed to start", async () => {
    provider.faults.bootFailure = new SandboxError("boot_failed", { message: "no" });
    for (let k = 0; k < 3; k++) expect(await (await create()).json()).toMatchObject({ reason: "boot_failed" });
    delete provider.faults.bootFailure;
    expect((await create()).status).toBe(201);
    expect(await (await create()).json()).toMatchObject({ reason: "quota_exceeded" });
  });

  it("does not count a sandbox that has failed, as on a standalone node", async () => {
    const { id } = (await (await create()).json()) as { readonly id: string };
    await node.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: {}, as: key });
    provider.instance(id as never).crash();
    await expect.poll(() => node.registry.record(id as never)?.state).toBe("failed");
    expect((await create()).status).toBe(201);
    expect(await (await create()).json()).toMatchObject({ reason: "quota_exceeded" });
  });
});
