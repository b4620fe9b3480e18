import { execResultSchema, routes, sandboxMetricsSchema, sandboxResourceSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type TestNode } from "../testing/test-node.ts";

let node: TestNode;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
});
afterAll(() => node[Symbol.asyncDispose]());

describe("sandboxes", () => {
  it("are created, read, listed, updated and destroyed", async () => {
    const created = await node.create({ name: "one", labels: { team: "a", tier: "x" }, metadata: { n: [1, null] } });
    expect(sandboxResourceSchema.parse(created)).toMatchObject({
      state: "ready",
      name: "one",
      metadata: { n: [1, null] },
    });
    const at = `/v1/sandboxes/${created.id}`;
    expect(await (await node.request("GET", at)).json()).toEqual(created);
    const listed = await node.request("GET", "/v1/sandboxes?label=team%3Da&label=tier&limit=10&state=ready");
    expect(await listed.json()).toEqual({ items: [created], nextCursor: null });
    expect(await (await node.request("GET", "/v1/sandboxes?label=team%3Db")).json()).toMatchObject({ items: [] });
    const changed = await node.request("PATCH", at, { json: { ttlMs: 60_000, labels: {} } });
    expect(routes.updateSandbox.answer.schema.parse(await changed.json())).toMatchObject({ ttlMs: 60_000, labels: {} });
    const gone = await node.request("DELETE", at);
    expect([gone.status, await gone.text()]).toEqual([204, ""]);
    expect(await errorOf(await node.request("POST", `${at}/exec`, { json: { command: "true" } }))).toMatchObject({
      status: 410,
      code: "gone",
    });
  });

  it("are listed page by page", async () => {
    const key = node.key({ tenant: "pages" });
    for (let each = 0; each < 5; each++) await node.create({}, { key });
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const answer = await node.request("GET", `/v1/sandboxes?limit=2${query}`, { key });
      const page = routes.listSandboxes.answer.schema.parse(await answer.json());
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.nextCursor;
    }
    expect(new Set(seen).size).toBe(5);
    expect(await errorOf(await node.request("GET", "/v1/sandboxes?cursor=x", { key }))).toMatchObject({ status: 400 });
    expect(await errorOf(await node.request("GET", "/v1/sandboxes?limit=2&limit=3"))).toMatchObject({ status: 400 });
  });

  it("are created once for one idempotency key", async () => {
    const headers = { "idempotency-key": "k1" };
    const [first, second] = await Promise.all([node.create({}, { headers }), node.create({}, { headers })]);
    expect(second.id).toBe(first.id);
    expect((await node.create({}, { headers })).id).toBe(first.id);
    const other = { json: { provider: "mock", name: "other" }, headers };
    expect(await errorOf(await node.request("POST", "/v1/sandboxes", other))).toMatchObject({ status: 409 });
    const invalid = { json: { provider: "mock" }, headers: { "idempotency-key": "a b" } };
    expect(await errorOf(await node.request("POST", "/v1/sandboxes", invalid))).toMatchObject({ status: 400 });
  });

  it("can be used with their own token, which gives access to nothing else", async () => {
    const { id, token: key } = await node.create();
    expect((await node.request("GET", `/v1/sandboxes/${id}`, { key })).status).toBe(200);
    expect((await node.request("POST", `/v1/sandboxes/${id}/exec`, { key, json: { command: "true" } })).status).toBe(
      200,
    );
    expect((await node.request("GET", "/v1/sandboxes", { key })).status).toBe(403);
    expect((await node.request("POST", "/v1/sandboxes", { key, json: {} })).status).toBe(403);
  });

  it("report their resource use", async () => {
    const { id } = await node.create();
    sandboxMetricsSchema.parse(await (await node.request("GET", `/v1/sandboxes/${id}/metrics`)).json());
  });
});

describe("exec", () => {
  it("answers with the result of the command, whether it succeeds or fails", async () => {
    const { id } = await node.create({ env: { WHO: "you" } });
    const exec = async (json: object) => {
      const response = await node.request("POST", `/v1/sandboxes/${id}/exec`, { json });
      expect(response.status).toBe(200);
      return execResultSchema.parse(await response.json());
    };
    expect(await exec({ command: "echo hello $WHO" })).toMatchObject({ exitCode: 0, stdout: "hello you\n" });
    expect(await exec({ argv: ["cat"], stdin: "grüße" })).toMatchObject({ stdout: "grüße" });
    expect(await exec({ command: "echo no >&2; exit 3" })).toMatchObject({ exitCode: 3, stderr: "no\n" });
    expect(await exec({ command: "sleep 60", timeoutMs: 20 })).toMatchObject({ timedOut: true });
    expect(Object.keys(await exec({ command: "true" })).slice(0, 6)).toEqual([
      "exitCode",
      "signal",
      "stdout",
      "stderr",
      "durationMs",
      "timedOut",
    ]);
  });

  it("requires exactly one command and refuses unknown fields", async () => {
    const { id } = await node.create();
    for (const json of [{}, { command: "a", argv: ["b"] }, { argv: [] }, { command: "a", shell: true }]) {
      expect(await errorOf(await node.request("POST", `/v1/sandboxes/${id}/exec`, { json }))).toMatchObject({
        status: 400,
        reason: "invalid_body",
      });
    }
  });

  it("kills the command when the caller leaves", async () => {
    const { id } = await node.create();
    await using server = await node.listen();
    const left = new AbortController();
    const asked = server.fetch("POST", `/v1/sandboxes/${id}/exec`, {
      json: { command: "sleep 600" },
      signal: left.signal,
    });
    const live = node.access.open(node.authenticator.authenticate(node.owner), id, { readOnly: false });
    await expect.poll(() => live.processes()).toHaveLength(1);
    left.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(async () => (await live.processes()).filter(({ isRunning }) => isRunning)).toEqual([]);
  });
});
