import { type CheckpointResource, routes, type SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type StoreNode, StoreNodes } from "./testing/store-nodes.ts";

let nodes: StoreNodes;
let a: StoreNode;
let b: StoreNode;

beforeEach(async () => {
  nodes = new StoreNodes();
  a = await nodes.start("a", new MockProvider());
  b = await nodes.start("b", new MockProvider());
});

afterEach(() => nodes[Symbol.asyncDispose]());

async function list(node: StoreNode, query = "", as?: string) {
  const response = await node.request("GET", `/v1/sandboxes${query}`, as === undefined ? {} : { as });
  return routes.listSandboxes.answer.schema.parse(await response.json());
}

async function get<T>(node: StoreNode, path: string): Promise<T> {
  const response = await node.request("GET", `/v1/sandboxes/${path}`);
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

const states = (items: readonly SandboxResource[]) => items.map(({ name, state, node }) => [name, state, node]);
const isOnNode = (id: string) => [a, b].some(({ records }) => records.get(id as never) !== undefined);

describe("a sandbox at rest", () => {
  it("is listed and described by every node, with its token, without being restored", async () => {
    const { id, token } = await a.create({ name: "drained" });
    const paused = await a.create({ name: "paused" });
    await a.request("POST", `/v1/sandboxes/${paused.id}/pause`);
    await b.create({ name: "running" });
    await a.drain();
    for (const node of [a, b]) {
      const { items } = await list(node);
      expect(new Set(states(items))).toEqual(
        new Set([
          ["drained", "stopped", null],
          ["paused", "paused", null],
          ["running", "ready", expect.any(String)],
        ]),
      );
      expect(await get(node, id)).toMatchObject({ id, state: "stopped", node: null, token });
    }
    expect([id, paused.id].some(isOnNode)).toBe(false);
  });

  it("shows its checkpoints without being restored", async () => {
    const { id } = await a.create();
    await a.request("POST", `/v1/sandboxes/${id}/checkpoints`, { json: { name: "mine" } });
    await a.drain();
    const { items } = await get<{ items: CheckpointResource[] }>(b, `${id}/checkpoints`);
    expect(items.map(({ name, isAutomatic }) => [name, isAutomatic])).toEqual([
      [null, true],
      ["mine", false],
    ]);
    expect(await get(b, `${id}/checkpoints/mine`)).toEqual(items[1]);
    expect((await b.request("GET", `/v1/sandboxes/${id}/checkpoints/other`)).status).toBe(404);
    expect(isOnNode(id)).toBe(false);
  });

  it("is restored on the node where it is used", async () => {
    const { id } = await a.create({ name: "moved" });
    await a.drain();
    const run = await b.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "true" } });
    expect(run.status).toBe(200);
    expect(states((await list(a)).items)).toEqual([["moved", "ready", (await get<SandboxResource>(b, id)).node]]);
  });

  it("is visible only to its tenant and to matching filters", async () => {
    const { id } = await a.create({ name: "mine", labels: { team: "blue" } });
    await a.drain();
    const other = await b.keyOf("other");
    expect((await list(b, "", other)).items).toEqual([]);
    expect((await b.request("GET", `/v1/sandboxes/${id}`, { as: other })).status).toBe(404);
    expect((await b.request("GET", `/v1/sandboxes/${id}/checkpoints`, { as: other })).status).toBe(404);
    const count = async (query: string) => (await list(b, query)).items.length;
    for (const query of ["?name=mine", "?state=stopped", "?provider=mock", "?label=team", "?label=team%3Dblue"])
      expect([query, await count(query)]).toEqual([query, 1]);
    for (const query of ["?name=x", "?state=paused", "?provider=gvisor", "?label=x", "?label=team%3Dred"])
      expect([query, await count(query)]).toEqual([query, 0]);
  });

  it("is shown as stopped once the lease of its dead owner has expired", async () => {
    const { id } = await a.create({ name: "orphaned" });
    await a.crash();
    expect(states((await list(b)).items)).toEqual([["orphaned", "ready", a.id]]);
    await nodes.clock.advance(120_000);
    expect(states((await list(b)).items)).toEqual([["orphaned", "stopped", null]]);
    expect(await get(b, id)).toMatchObject({ state: "stopped", node: null });
  });

  it("cannot be used while the lease of its dead owner runs, and the answer says how long", async () => {
    const { id } = await a.create();
    await a.crash();
    const used = await b.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "true" } });
    expect(used.status).toBe(503);
    expect(await used.json()).toMatchObject({
      reason: "owner_unreachable",
      message: expect.stringMatching(/is not responding; retry in \d+ s$/),
    });
    expect(Number(used.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("can be destroyed even if it cannot be restored", async () => {
    const { id } = await a.create();
    await a.crash();
    await nodes.clock.advance(120_000);
    const used = await b.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command: "true" } });
    expect(await used.json()).toMatchObject({ reason: "no_checkpoint" });
    expect((await b.request("DELETE", `/v1/sandboxes/${id}`)).status).toBe(204);
    expect((await list(b)).items).toEqual([]);
    expect(await b.leases.read(id)).toBeUndefined();
  });

  it("is read from the store again only after it changes", async () => {
    const { id } = await a.create();
    await a.drain();
    await list(b);
    nodes.read.length = 0;
    await list(b);
    expect(nodes.read).toEqual([]);
    await b.request("POST", `/v1/sandboxes/${id}/resume`);
    await list(b);
    expect(nodes.read).toEqual([id]);
  });
});

describe("pages of sandboxes", () => {
  it.each([1, 2, 3, 5])("contain every sandbox once, on a node or at rest, %d at a time", async (limit) => {
    const names: string[] = [];
    for (const [at, node] of [a, b, a, a, b, a, a].entries()) {
      names.push(`${at}`);
      await node.create({ name: `${at}` });
      // Some are created at the same instant, all of those on one node.
      if (at !== 2 && at !== 5) await nodes.clock.advance(1);
    }
    await a.drain();
    const seen: (string | null)[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof list>> = await list(b, `?limit=${limit}${cursor && `&cursor=${cursor}`}`);
      expect(page.items.length).toBeLessThanOrEqual(limit);
      seen.push(...page.items.map(({ name }) => name));
      cursor = page.nextCursor;
    }
    expect(seen.toSorted()).toEqual(names);
  });
});
