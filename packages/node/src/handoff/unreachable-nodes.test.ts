import { type CheckpointResource, routes, type SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type StoreNode, StoreNodes } from "./testing/store-nodes.ts";

let nodes: StoreNodes;
let a: StoreNode;
let b: StoreNode;

beforeEach(async () => {
  nodes = new StoreNodes();
  a = await nodes.start("a", new MockProvider(), { advertiseUrl: null });
  b = await nodes.start("b", new MockProvider(), { advertiseUrl: null });
});

afterEach(() => nodes[Symbol.asyncDispose]());

const exec = (node: StoreNode, id: string) =>
  node.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "true" } });

async function list(node: StoreNode, query = "") {
  const response = await node.request("GET", `/v1/sandboxes${query}`);
  expect(response.headers.get("sandpiper-missing-nodes")).toBeNull();
  return routes.listSandboxes.answer.schema.parse(await response.json());
}

describe("a sandbox of a node that other nodes cannot reach", () => {
  it("moves to the node that receives a request, once for several requests", async () => {
    const { id, node } = await a.create();
    expect(node).toBe(a.id);
    const used = await nodes.whileTimePasses(Promise.all([1, 2, 3, 4].map(() => exec(b, id))));
    expect(used.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(await (await b.request("GET", `/v1/sandboxes/${id}`)).json()).toMatchObject({ state: "ready", node: b.id });
    await expect.poll(() => a.registry.record(id)).toBeUndefined();
    // Every acquisition increases the epoch.
    expect(await b.leases.read(id)).toMatchObject({ owner: b.id, url: null, epoch: 2 });
  });

  it("moves back when its first node receives the next request", async () => {
    const { id } = await a.create();
    for (const node of [b, a, b]) expect((await nodes.whileTimePasses(exec(node, id))).status).toBe(200);
    expect(await b.leases.read(id)).toMatchObject({ owner: b.id, epoch: 4 });
  });

  it("stays where it is while other nodes describe and list it", async () => {
    const { id, token } = await a.create({ name: "far" });
    await a.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: { name: "mine" } });
    await b.create({ name: "near" });
    const shown = await (await b.request("GET", `/v1/sandboxes/${id}`)).json();
    expect(shown).toMatchObject({ id, state: "ready", node: a.id, token });
    const { items } = await list(b);
    expect(items).toContainEqual(shown);
    expect(items.map(({ name }) => name).toSorted()).toEqual(["far", "near"]);
    const count = async (query: string) => (await list(b, query)).items.length;
    expect([await count("?state=ready"), await count("?state=stopped")]).toEqual([2, 0]);
    const kept = await b.request("GET", `/v1/sandboxes/${id}/checkpoints`);
    expect(((await kept.json()) as { items: CheckpointResource[] }).items).toMatchObject([{ name: "mine" }]);
    expect(await a.leases.read(id)).toMatchObject({ owner: a.id, waiter: null, epoch: 1 });
  });

  it("is on one page of a list, together with those of this node and those at rest", async () => {
    const made = [a, b, a, b, a].map((node, at) => () => node.create({ name: `${at}` }));
    for (const create of made) {
      await create();
      await nodes.clock.advance(1);
    }
    const seen: (string | null)[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof list>> = await list(b, `?limit=2${cursor && `&cursor=${cursor}`}`);
      seen.push(...page.items.map(({ name }: SandboxResource) => name));
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(["4", "3", "2", "1", "0"]);
  });

  it("stays with an attached client, and requests elsewhere are refused", async () => {
    const { id } = await a.create();
    await a.ownership.setAttached(id, true);
    const refused = await nodes.whileTimePasses(exec(b, id));
    expect(await refused.json()).toMatchObject({ code: "failed_precondition", reason: "sandbox_in_use" });
    expect(await a.leases.read(id)).toMatchObject({ owner: a.id, epoch: 1 });
  });

  it("is destroyed from any node, even with an attached client, and without being restored", async () => {
    const { id } = await a.create();
    await a.ownership.setAttached(id, true);
    expect((await nodes.whileTimePasses(b.request("DELETE", `/v1/sandboxes/${id}`))).status).toBe(204);
    expect(await b.leases.read(id)).toBeUndefined();
    expect((await list(a)).items).toEqual([]);
  });

  it("does not exist for other tenants, who cannot move it", async () => {
    const { id } = await a.create();
    const as = await b.keyOf("other");
    const json = { command: "true" };
    for (const [method, path, body] of [
      ["GET", "", {}],
      ["DELETE", "", {}],
      ["POST", "/exec", { json }],
      ["POST", "/handoff", { json: {} }],
    ] as const) {
      expect((await b.request(method, `/v1/sandboxes/${id}${path}`, { ...body, as })).status).toBe(404);
    }
    expect(await a.leases.read(id)).toMatchObject({ owner: a.id, waiter: null });
  });

  it("has its events on its node alone, and other nodes name that node", async () => {
    const { id } = await a.create();
    const refused = await b.request("GET", `/v1/events?sandbox=${id}`);
    expect(await refused.json()).toMatchObject({
      code: "failed_precondition",
      reason: "owner_has_no_url",
      details: { id, node: a.id },
    });
    await nodes.whileTimePasses(exec(b, id));
    expect((await b.request("GET", `/v1/events?sandbox=${id}`)).status).toBe(200);
  });

  it("leaves a draining node, and the next node that receives a request restores it", async () => {
    const { id } = await a.create();
    await a.drain();
    expect((await exec(b, id)).status).toBe(200);
    expect(await b.leases.read(id)).toMatchObject({ owner: b.id });
  });
});

describe("a node with a URL", () => {
  it("takes a sandbox from a node without one, which in turn forwards requests to it", async () => {
    const c = await nodes.start("c", new MockProvider());
    const { id } = await a.create();
    expect((await nodes.whileTimePasses(exec(c, id))).status).toBe(200);
    expect((await exec(a, id)).status).toBe(200);
    expect(await a.leases.read(id)).toMatchObject({ owner: c.id, url: c.url, epoch: 2 });
  });
});

describe("a node whose URL does not answer", () => {
  it("cannot serve requests from other nodes, and still hands its sandboxes over through the store", async () => {
    // No program listens on port 1.
    const c = await nodes.start("c", new MockProvider(), { advertiseUrl: "http://127.0.0.1:1" });
    const { id } = await c.create();
    const refused = await exec(b, id);
    expect(await refused.json()).toMatchObject({ code: "unavailable", reason: "owner_unreachable" });
    const moving = b.request("POST", `/v1/sandboxes/${id}/handoff`, { json: {} });
    expect((await nodes.whileTimePasses(moving)).status).toBe(200);
    expect((await exec(b, id)).status).toBe(200);
  });
});

describe("a request that another node forwarded", () => {
  it("moves no sandbox: the node that forwarded it does", async () => {
    const c = await nodes.start("c", new MockProvider());
    const { id } = await a.create();
    const path = `/v1/sandboxes/${id}/exec`;
    const key = await c.keyOf("mine");
    const response = await fetch(c.url + path, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "x-sandpiper-node": b.proof.sign({ method: "POST", path }, c.url),
      },
      body: JSON.stringify({ command: "true" }),
    });
    expect(await response.json()).toMatchObject({ code: "unavailable", reason: "sandbox_moved" });
    expect(await a.leases.read(id)).toMatchObject({ owner: a.id, waiter: null });
  });
});
