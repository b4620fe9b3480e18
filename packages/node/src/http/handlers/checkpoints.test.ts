import { routes } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type TestNode } from "../testing/test-node.ts";

let node: TestNode;
let id: string;
let token: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
});
beforeEach(async () => {
  ({ id, token } = await node.create({ labels: { of: "original" } }));
});
afterAll(() => node[Symbol.asyncDispose]());

function ask(method: string, path: string, json?: object) {
  return node.request(method, `/v1/sandboxes/${id}${path}`, json === undefined ? {} : { json });
}

async function checkpoint(json: object = {}) {
  const response = await ask("POST", "/checkpoints", json);
  expect(response.status).toBe(201);
  return routes.createCheckpoint.answer.schema.parse(await response.json());
}

describe("checkpoints", () => {
  it("are created, listed newest first, found by id or name, and deleted", async () => {
    const first = await checkpoint({ name: "first", ttlMs: 60_000 });
    const second = await checkpoint();
    expect(first).toMatchObject({ name: "first", sandboxId: id, fidelity: "memory" });
    expect(Date.parse(first.expiresAt as string) - Date.parse(first.createdAt)).toBe(60_000);
    const listed = routes.listCheckpoints.answer.schema.parse(await (await ask("GET", "/checkpoints")).json());
    expect(listed.items).toEqual([second, first]);
    for (const ref of [first.id, "first"])
      expect(await (await ask("GET", `/checkpoints/${ref}`)).json()).toEqual(first);
    expect((await ask("DELETE", "/checkpoints/first")).status).toBe(204);
    expect(await errorOf(await ask("DELETE", "/checkpoints/first"))).toMatchObject({
      status: 404,
      reason: "no_such_checkpoint",
    });
  });

  it("are created without a body", async () => {
    expect((await ask("POST", "/checkpoints")).status).toBe(201);
  });

  it.each(["../x", "a/b", "", "0b6e2c52-1d5a-4a3e-8d0e-6a7f4f1d2c3b"])("cannot have the name %j", async (name) => {
    const refused = await ask("POST", "/checkpoints", { name });
    expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "invalid_body" });
  });

  it("can be created, listed and rolled back to with the sandbox's token, which cannot fork", async () => {
    const asked = (method: string, path: string) => node.request(method, `/v1/sandboxes/${id}${path}`, { key: token });
    expect((await asked("POST", "/checkpoints")).status).toBe(201);
    expect((await asked("GET", "/checkpoints")).status).toBe(200);
    expect((await asked("POST", "/rollback")).status).toBe(200);
    expect(await errorOf(await asked("POST", "/fork"))).toMatchObject({ status: 403, reason: "missing_scope" });
  });

  it("define the shape of a sandbox that is created from them", async () => {
    const { id: from } = await checkpoint();
    const refused = await node.request("POST", "/v1/sandboxes", { json: { checkpoint: from, memoryMib: 64 } });
    expect(await errorOf(refused)).toMatchObject({ status: 400, details: { issues: [{ path: "memoryMib" }] } });
  });
});

describe("a sandbox", () => {
  it("is forked into the requested number of copies, one by default", async () => {
    const { name } = await checkpoint({ name: "base" });
    const forks = async (json: object) => {
      const response = await ask("POST", "/fork", json);
      expect(response.status).toBe(201);
      return routes.forkSandbox.answer.schema.parse(await response.json()).items;
    };
    expect(await forks({})).toHaveLength(1);
    expect(await forks({ name: "copy" })).toMatchObject([{ name: "copy" }]);
    const three = await forks({ count: 3, checkpoint: name, labels: { of: "fork" } });
    expect(three.map((each) => [each.name, each.labels])).toEqual(Array(3).fill([null, { of: "fork" }]));
    expect(await errorOf(await ask("POST", "/fork", { count: 2, name: "both" }))).toMatchObject({ status: 400 });
    expect(new Set([id, ...three.map((each) => each.id)]).size).toBe(4);
    expect(await errorOf(await ask("POST", "/fork", { count: 33 }))).toMatchObject({ status: 400 });
  });

  it.each([
    ["pause", { state: "paused" }],
    ["resume", { state: "ready" }],
    ["handoff", { state: "ready" }],
  ])("answers %s with its new state", async (verb, expected) => {
    const response = await ask("POST", `/${verb}`);
    expect(response.status).toBe(200);
    expect(routes.resumeSandbox.answer.schema.parse(await response.json())).toMatchObject({ id, ...expected });
  });

  it("is rolled back to its newest checkpoint, or to a named one", async () => {
    const first = await checkpoint({ name: "first" });
    const second = await checkpoint();
    for (const [json, expected] of [
      [{}, second],
      [{ checkpoint: "first" }, first],
    ] as const) {
      const answer = routes.rollbackSandbox.answer.schema.parse(await (await ask("POST", "/rollback", json)).json());
      expect(answer.rolledBackTo).toMatchObject({ checkpoint: expected.id, createdAt: expected.createdAt });
    }
  });
});
