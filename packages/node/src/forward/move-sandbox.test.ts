import type { SandboxResource } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type StoreNode, StoreNodes } from "../handoff/testing/store-nodes.ts";
import { errorOf, nodeOfTest } from "../http/testing/test-node.ts";

/** A provider whose checkpoints no other node can restore, and which restores none of theirs. */
class OddProvider extends MockProvider {
  override async checkpointRequirements() {
    return { release: "odd" };
  }
}

let nodes: StoreNodes;
let a: StoreNode;
let b: StoreNode;
let c: StoreNode;
let sandbox: SandboxResource;

beforeEach(async () => {
  nodes = new StoreNodes();
  a = await nodes.start("a", new MockProvider());
  b = await nodes.start("b", new MockProvider());
  c = await nodes.start("c", new MockProvider());
  for (const node of [a, b, c]) node.handoffs?.open();
  sandbox = await a.create();
  await a.announce();
});

afterEach(() => nodes[Symbol.asyncDispose]());

const move = (from: StoreNode, json: object = {}, as?: string) =>
  from.request("POST", `/v1/sandboxes/${sandbox.id}/move`, as === undefined ? { json } : { json, as });

async function moved(from: StoreNode, json: object = {}): Promise<SandboxResource> {
  const response = await move(from, json);
  expect(response.status).toBe(200);
  return (await response.json()) as SandboxResource;
}

describe("a move to a named node", () => {
  it("works from the owner, the target and a third node, by id and by the beginning of an id", async () => {
    expect(await moved(a, { node: b.id })).toMatchObject({ state: "ready", node: b.id });
    expect(await moved(a, { node: a.id.slice(0, 13) })).toMatchObject({ state: "ready", node: a.id });
    expect(await moved(c, { node: b.id })).toMatchObject({ state: "ready", node: b.id });
    expect(a.registry.record(sandbox.id)).toBeUndefined();
  });

  it("succeeds without a change if the sandbox is there already", async () => {
    const { changes } = a.registry.instance(sandbox.id).live;
    expect(await moved(c, { node: a.id })).toMatchObject({ state: "ready", node: a.id });
    expect(a.registry.instance(sandbox.id).live.changes).toBe(changes);
  });

  it("restores a sandbox at rest there", async () => {
    await a.drain();
    expect(await moved(b, { node: c.id })).toMatchObject({ state: "ready", node: c.id });
  });

  it("is refused for an unknown node", async () => {
    const error = await errorOf(await move(a, { node: "00000000-0000-4000-8000-000000000000" }));
    expect(error).toMatchObject({ status: 404, reason: "no_such_node", hint: expect.stringContaining("nodes") });
  });

  it("is refused for a node that is draining, dead, or does not answer, and the sandbox stays", async () => {
    b.phase.drain();
    await b.announce();
    expect(await errorOf(await move(a, { node: b.id }))).toMatchObject({ status: 503, reason: "node_stopping" });
    const { id } = c;
    await c.stopServing();
    expect(await errorOf(await move(a, { node: id }))).toMatchObject({
      status: 503,
      reason: "target_node_unreachable",
      message: expect.stringContaining(id),
    });
    expect(a.registry.running(sandbox.id)).toBeDefined();
  });

  it("is refused by a node that cannot restore it, and the sandbox stays", async () => {
    const odd = await nodes.start("odd", new OddProvider());
    const error = await errorOf(await move(a, { node: odd.id }));
    expect(error).toMatchObject({ status: 412, reason: "incompatible_node" });
    expect(a.registry.running(sandbox.id)).toBeDefined();
  });

  it("needs a takeover while a client is attached", async () => {
    await a.ownership.setAttached(sandbox.id, true);
    expect(await errorOf(await move(c, { node: b.id }))).toMatchObject({ reason: "sandbox_in_use" });
    expect(await moved(c, { node: b.id, takeover: true })).toMatchObject({ node: b.id });
  });

  it("accepts the sandbox's own token, and no other tenant's key", async () => {
    expect((await move(c, { node: b.id }, sandbox.token as string)).status).toBe(200);
    const other = await errorOf(await move(c, { node: a.id }, await c.keyOf("other")));
    expect(other).toMatchObject({ status: 404, reason: "no_such_sandbox" });
  });
});

describe("a move without a named node", () => {
  it("goes to the node with the fewest sandboxes, but not to the owner", async () => {
    await b.create();
    await b.announce();
    expect(await moved(a)).toMatchObject({ node: c.id });
    await b.request("DELETE", `/v1/sandboxes/${sandbox.id}`);
  });

  it("prefers a node that has the sandbox's runtime to one with fewer sandboxes", async () => {
    const upgraded = await nodes.start("upgraded", new MockProvider(), { runtimes: ["mock 2", "mock 1"] });
    await upgraded.create();
    await upgraded.announce();
    expect(await moved(a)).toMatchObject({ node: upgraded.id });
  });

  it("passes over nodes that are draining or cannot restore it", async () => {
    await b.create();
    await b.announce();
    await nodes.start("odd", new OddProvider());
    c.phase.drain();
    await c.announce();
    expect(await moved(a)).toMatchObject({ node: b.id });
  });

  it("says why each node refused if none is left", async () => {
    const odd = await nodes.start("odd", new OddProvider());
    for (const node of [b, c]) {
      node.phase.drain();
      await node.announce();
    }
    const error = await errorOf(await move(a));
    expect(error).toMatchObject({ reason: "no_node_for_sandbox", message: expect.stringContaining(odd.id) });
    expect(a.registry.running(sandbox.id)).toBeDefined();
  });
});

describe("a standalone node", () => {
  it("refuses to move a sandbox, and says how to start a cluster", async () => {
    const node = await nodeOfTest({ provider: new MockProvider() });
    const { id } = await node.create();
    const error = await errorOf(await node.request("POST", `/v1/sandboxes/${id}/move`, { json: {} }));
    expect(error).toMatchObject({ reason: "no_cluster", hint: expect.stringContaining("SANDPIPER_STORE") });
  });
});
