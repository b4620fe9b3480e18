import { MockProvider } from "@sandpiper/providers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type StoreNode, StoreNodes } from "./testing/store-nodes.ts";

let nodes: StoreNodes;

beforeEach(() => {
  nodes = new StoreNodes();
});

afterEach(() => nodes[Symbol.asyncDispose]());

const exec = (node: StoreNode, id: string, command = "true") =>
  node.request("POST", `/v1/sandboxes/${id}/exec`, { json: { command } });

describe("a sandbox of a cluster", () => {
  it("gets checkpoints by default, so that it survives the loss of its node", async () => {
    const [a, b] = [
      await nodes.start("a", new MockProvider(), { checkpoints: "auto" }),
      await nodes.start("b", new MockProvider(), { checkpoints: "auto" }),
    ];
    const { id, checkpointPolicy } = await a.create();
    expect(checkpointPolicy).toMatchObject({ onIdle: true, everyMs: 300_000 });
    await exec(a, id, "echo kept > file");
    await nodes.clock.advance(2000);
    const kinds = () => a.events.list({ after: 0, limit: 100 }).map(({ kind }) => kind);
    await expect.poll(kinds).toContain("sandbox.checkpointed");
    await a.crash();
    await nodes.clock.advance(120_000);
    expect(await (await exec(b, id, "cat file")).json()).toMatchObject({ stdout: "kept\n" });
  });

  it("gets no automatic checkpoints if its creator or the node turns them off", async () => {
    const a = await nodes.start("a", new MockProvider(), { checkpoints: "auto" });
    expect((await a.create({ checkpointPolicy: null })).checkpointPolicy).toBeNull();
    const b = await nodes.start("b", new MockProvider(), { checkpoints: "none" });
    expect((await b.create()).checkpointPolicy).toBeNull();
  });

  it("has a name that no other sandbox of its tenant has, on any node, until it is renamed or destroyed", async () => {
    const [a, b] = [await nodes.start("a", new MockProvider()), await nodes.start("b", new MockProvider())];
    const taken = (name: string) => b.request("POST", "/v1/sandboxes", { json: { provider: "mock", name } });
    const { id } = await a.create({ name: "build" });
    const refused = await taken("build");
    expect([refused.status, await refused.json()]).toMatchObject([409, { reason: "name_in_use" }]);
    await a.request("PATCH", `/v1/sandboxes/${id}`, { json: { name: "other" } });
    expect((await taken("build")).status).toBe(201);
    expect((await taken("other")).status).toBe(409);
    await a.request("DELETE", `/v1/sandboxes/${id}`);
    expect((await taken("other")).status).toBe(201);
  });

  it("is woken on the node that receives a request after it was paused on another", async () => {
    const [a, b] = [await nodes.start("a", new MockProvider()), await nodes.start("b", new MockProvider())];
    const { id } = await a.create();
    await exec(a, id, "echo kept > file");
    await a.request("POST", `/v1/sandboxes/${id}/pause`);
    await a.drain();
    const managed = await b.request("PATCH", `/v1/sandboxes/${id}`, { json: { labels: { seen: "yes" } } });
    expect(await managed.json()).toMatchObject({ state: "paused" });
    expect(await (await exec(b, id, "cat file")).json()).toMatchObject({ stdout: "kept\n" });
  });
});
