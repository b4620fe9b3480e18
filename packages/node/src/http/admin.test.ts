import { routes } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, type TestNode } from "./testing/test-node.ts";

let node: TestNode;
let key: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  key = node.key({ scopes: ["admin"] });
});
afterAll(() => node[Symbol.asyncDispose]());

describe("an admin", () => {
  it("creates keys, which are shown once, and revokes them immediately", async () => {
    const response = await node.request("POST", "/v1/keys", {
      key,
      json: { name: "ci", tenant: "ci", quota: { maxSandboxes: 1 } },
    });
    const created = routes.createKey.answer.schema.parse(await response.json());
    expect((await node.request("GET", "/v1/sandboxes", { key: created.key })).status).toBe(200);
    const listed = await (await node.request("GET", "/v1/keys", { key })).text();
    expect(routes.listKeys.answer.schema.parse(JSON.parse(listed)).items.map(({ id }) => id)).toContain(created.id);
    expect(listed).not.toContain(created.key);
    expect((await node.request("DELETE", `/v1/keys/${created.id}`, { key })).status).toBe(204);
    expect((await node.request("GET", "/v1/sandboxes", { key: created.key })).status).toBe(401);
  });

  it("sets and lists warm pools", async () => {
    const set = await node.request("PUT", "/v1/pools", { key, json: { provider: "mock", target: 1 } });
    expect(routes.setPool.answer.schema.parse(await set.json())).toMatchObject({ target: 1 });
    const listed = await (await node.request("GET", "/v1/pools", { key })).json();
    expect(routes.listPools.answer.schema.parse(listed).items).toHaveLength(1);
    await node.request("PUT", "/v1/pools", { key, json: { provider: "mock", target: 0 } });
  });

  it("creates webhooks, whose secret is shown once, and removes them", async () => {
    const response = await node.request("POST", "/v1/webhooks", { key, json: { url: "http://127.0.0.1:1/hook" } });
    const { id, secret } = routes.createWebhook.answer.schema.parse(await response.json());
    const listed = await (await node.request("GET", "/v1/webhooks", { key })).text();
    expect(routes.listWebhooks.answer.schema.parse(JSON.parse(listed)).items.map((each) => each.id)).toEqual([id]);
    expect(listed).not.toContain(secret);
    expect((await node.request("DELETE", `/v1/webhooks/${id}`, { key })).status).toBe(204);
    expect((await node.request("DELETE", `/v1/webhooks/${id}`, { key })).status).toBe(404);
  });

  it("lists the nodes, and drains the one that gets the request", async () => {
    const listed = routes.listNodes.answer.schema.parse(await (await node.request("GET", "/v1/nodes", { key })).json());
    expect(listed.items.map(({ isThisNode }) => isThisNode)).toEqual([true, false]);
    expect((await node.request("POST", "/v1/nodes/drain", { key })).status).toBe(204);
    expect((await node.request("POST", "/v1/nodes/drain", { key, json: { deadlineMs: 5000 } })).status).toBe(204);
    expect(node.nodes.drains).toEqual([undefined, 5000]);
  });

  it("reads the node's metrics, which count earlier requests", async () => {
    await node.request("GET", "/v1/sandboxes");
    const response = await node.request("GET", "/metrics", { key });
    expect(response.headers.get("content-type")).toContain("text/plain");
    expect(await response.text()).toContain('operation="listSandboxes",status="200"');
  });
});
