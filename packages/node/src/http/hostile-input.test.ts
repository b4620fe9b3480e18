import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { errorOf, nodeOfTest } from "./testing/test-node.ts";

async function setUp() {
  const node = await nodeOfTest({ provider: new MockProvider() });
  return { ...(await node.create()), node };
}

function nested(depth: number): unknown {
  return JSON.parse("[".repeat(depth) + "]".repeat(depth));
}

describe("a hostile body", () => {
  it("is refused when nested too deep", async () => {
    const { node, id } = await setUp();
    const change = (depth: number) => {
      const bytes = `{"metadata":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
      const headers = { "content-type": "application/json" };
      return node.request("PATCH", `/v1/sandboxes/${id}`, { bytes, headers });
    };
    for (const depth of [100, 3000, 30_000]) {
      expect(await errorOf(await change(depth))).toMatchObject({ status: 400, reason: "body_too_deep" });
    }
    const answer = await change(50);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ metadata: { a: nested(50) } });
  });

  it.each([
    ["labels", Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`l${at}`, ""]))],
    ["metadata", { text: "x".repeat(20_000) }],
  ])("is refused with too many %s", async (field, value) => {
    const { node, id } = await setUp();
    const refused = await node.request("PATCH", `/v1/sandboxes/${id}`, { json: { [field]: value } });
    expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "invalid_body" });
  });

  it.each([
    ["env", { A: "x".repeat(50_000), B: "x".repeat(50_000), C: "x".repeat(50_000) }],
    ["cwd", `/${"x".repeat(10_000)}`],
    ["idleExcept", Array.from({ length: 1000 }, () => "exec")],
  ])("is refused with a sandbox's oversized %s", async (field, value) => {
    const node = await nodeOfTest({ provider: new MockProvider(), deps: { bodyLimitBytes: 1024 * 1024 } });
    const refused = await node.request("POST", "/v1/sandboxes", { json: { provider: "mock", [field]: value } });
    expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "invalid_body" });
  });

  it("gets a short answer, however much of it is wrong", async () => {
    const node = await nodeOfTest({ provider: new MockProvider(), deps: { bodyLimitBytes: 1024 * 1024 } });
    const unknown = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`unknown${at}`, at]));
    const labels = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`wrong key ${at}`, at]));
    const refused = await node.request("POST", "/v1/sandboxes", { json: { ...unknown, labels } });
    expect(refused.status).toBe(400);
    expect((await refused.text()).length).toBeLessThan(64 * 1024);
  });

  it.each([{ memoryMib: 2 ** 53 - 1 }, { diskMib: 2 ** 40 }, { maxProcesses: 2 ** 31 }, { vcpuCount: 1e300 }])(
    "is refused with an impossible limit: %j",
    async (limits) => {
      const { node } = await setUp();
      const refused = await node.request("POST", "/v1/sandboxes", { json: { provider: "mock", ...limits } });
      expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "invalid_body" });
    },
  );

  it("is refused with an unpaired surrogate", async () => {
    const { node, id } = await setUp();
    for (const json of [{ command: "echo \ud800" }, { command: "true", env: { A: "\udfff" } }]) {
      const refused = await node.request("POST", `/v1/sandboxes/${id}/exec`, { json });
      expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "malformed_text" });
    }
  });
});

describe("a malformed query", () => {
  it.each([
    "/files?path=/tmp/%ff",
    "/files?path=/tmp/%c3%28",
    "/files?path=%ED%A0%80",
    "/files?path=/tmp/a&__proto__=x",
  ])("is refused: %s", async (path) => {
    const { node, id } = await setUp();
    const refused = await node.request("PUT", `/v1/sandboxes/${id}${path}`, { bytes: "x" });
    expect(await errorOf(refused)).toMatchObject({ status: 400, reason: "invalid_query" });
  });
});

describe("a streamed answer", () => {
  it("ends within a second when its key is revoked", async () => {
    const { node } = await setUp();
    const admin = node.key({ scopes: ["admin"] });
    const key = node.key({ scopes: ["read"] });
    await using server = await node.listen();
    const headers = { authorization: `Bearer ${key}`, accept: "text/event-stream" };
    const answer = await fetch(`${server.url}/v1/events`, { headers });
    const reading = answer.text();
    expect((await node.request("DELETE", `/v1/keys/${key.split("_")[1]}`, { key: admin })).status).toBe(204);
    await expect(reading).rejects.toThrow();
  });
});
