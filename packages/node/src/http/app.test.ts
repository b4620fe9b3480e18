import { connect } from "node:net";
import { SandboxError, systemClock } from "@sandpiper/core";
import { errorBodySchema, healthSchema, routes } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { describe, expect, it } from "vitest";
import { NodePhase } from "../sandboxes/node-phase.ts";
import { Callers } from "./callers.ts";
import { errorOf, nodeOfTest, type TestNodeOptions } from "./testing/test-node.ts";

const UUID = /^[0-9a-f-]{36}$/;

const setUp = (deps: TestNodeOptions["deps"] = {}) => nodeOfTest({ provider: new MockProvider(), deps });

describe("an answer", () => {
  it("carries the request's id, which is the caller's own if it is valid", async () => {
    const { request } = await setUp();
    for (const path of ["/health", "/v1/sandboxes", "/nowhere", "/openapi.json"]) {
      const own = await request("GET", path, { headers: { "x-request-id": "mine-1" } });
      expect(own.headers.get("x-request-id")).toBe("mine-1");
      for (const invalid of ["a b", "x".repeat(200), "<script>"]) {
        const response = await request("GET", path, { headers: { "x-request-id": invalid } });
        expect(response.headers.get("x-request-id")).toMatch(UUID);
      }
    }
    expect((await errorOf(await request("GET", "/nowhere", { headers: { "x-request-id": "e" } }))).requestId).toBe("e");
  });

  it("has the usual error body for an unknown path and an unsupported method", async () => {
    const { request } = await setUp();
    expect(await errorOf(await request("GET", "/v2"))).toMatchObject({ status: 404, reason: "no_such_route" });
    expect(await errorOf(await request("GET", "/v1/sandboxes/"))).toMatchObject({ status: 404 });
    const wrong = await request("PATCH", "/v1/sandboxes");
    expect(wrong.headers.get("allow")).toBe("POST, GET");
    expect(await errorOf(wrong)).toMatchObject({ status: 405, code: "invalid_argument", reason: "method_not_allowed" });
    expect((await request("OPTIONS", "/v1/sandboxes")).status).toBe(405);
  });

  it("hides the cause of an internal error, which the log shows under the request's id", async () => {
    const authenticator = {
      authenticate() {
        throw new TypeError("cannot read /secret/place");
      },
      admit: () => Promise.reject(new TypeError("cannot read /secret/place")),
    };
    const rateLimits = { perKey: 0, perAddress: 0 };
    const callers = new Callers({ authenticator, rateLimits, trustedProxies: [], clock: systemClock });
    const { request, logged } = await setUp({ callers });
    const response = await request("GET", "/v1/sandboxes", { headers: { "x-request-id": "r1" } });
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(errorBodySchema.parse(JSON.parse(text))).toMatchObject({ code: "internal", requestId: "r1" });
    expect(text).not.toContain("secret");
    expect(logged).toContainEqual({
      level: "error",
      fields: expect.objectContaining({ requestId: "r1", err: expect.any(TypeError) }),
      message: "request failed",
    });
  });
});

describe("a request with an invalid target", () => {
  it.each([
    "GET /a\\b HTTP/1.1\r\nHost: x",
    "GET /health HTTP/1.1\r\nHost: a b",
    "GET /health HTTP/1.0",
    "GET * HTTP/1.1\r\nHost: x",
    "NONSENSE",
  ])("gets the usual error body: %j", async (head) => {
    const node = await setUp();
    await using server = await node.listen();
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.end(`${head}${head.includes("1.1") ? "\r\nConnection: close" : ""}\r\n\r\n`);
    const answer = (await Array.fromAsync(socket)).join("");
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    const body = /\{.*\}/s.exec(answer)?.[0] ?? "";
    expect(errorBodySchema.parse(JSON.parse(body)).reason).toBe("malformed_request");
  });
});

describe("GET /health", () => {
  it("needs no credential, and reports that the node is stopping, which refuses requests then", async () => {
    const phase = new NodePhase();
    const { request } = await setUp({ phase });
    const ask = async () => healthSchema.parse(await (await request("GET", "/health", { key: undefined })).json());
    expect(await ask()).toEqual({ status: "ok", version: "1.2.3" });
    phase.stop();
    expect(await ask()).toEqual({ status: "stopping", version: "1.2.3" });
    expect(await errorOf(await request("GET", "/v1/sandboxes"))).toMatchObject({
      status: 503,
      reason: "node_stopping",
    });
  });
});

describe("the API documents", () => {
  it("need no credential, so that a browser opens them", async () => {
    const node = await setUp();
    for (const path of ["/openapi.json", "/docs"]) {
      expect((await node.request("GET", path, { key: undefined })).status).toBe(200);
    }
  });

  it("describe every operation, without dangling references", async () => {
    const { request } = await setUp();
    const text = await (await request("GET", "/openapi.json")).text();
    const document = JSON.parse(text);
    expect(document.openapi).toBe("3.1.0");
    const described = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(described.sort()).toEqual(Object.keys(routes).sort());
    const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name = ""]) => name);
    expect(references).toContain("Sandbox");
    expect(references.filter((name) => !(name in document.components.schemas))).toEqual([]);
    expect(text).not.toContain("$defs");
    const { parameters, security } = document.paths["/v1/sandboxes/{id}/files"].get;
    expect(parameters.map(({ name }: { name: string }) => name)).toEqual([
      "id",
      "path",
      "offset",
      "lengthBytes",
      "Range",
    ]);
    expect(security).toEqual([{ bearer: [] }]);
    const bodyAt = (path: string) => document.paths[`/v1/sandboxes/{id}/${path}`].post.requestBody;
    expect(["exec", "fork", "checkpoints"].map((path) => bodyAt(path).required)).toEqual([true, false, false]);
  });

  it("include a reference page that loads nothing from other servers", async () => {
    const { request } = await setUp();
    const response = await request("GET", "/docs");
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const page = await response.text();
    for (const id of Object.keys(routes)) expect(page).toContain(`id="${id}"`);
    expect(page).not.toMatch(/<script|src=|href="(?!#|\/openapi\.json")|url\(|@import/);
    expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  });
});

describe("a web page", () => {
  const origin = "https://app.example.com";

  it("may read answers only if its origin is configured", async () => {
    const closed = await setUp();
    const open = await setUp({ corsOrigins: [origin] });
    const allowedTo = async (node: typeof open, from: string) =>
      (await node.request("GET", "/v1/sandboxes", { headers: { origin: from } })).headers.get(
        "access-control-allow-origin",
      );
    expect(await allowedTo(closed, origin)).toBeNull();
    expect(await allowedTo(open, origin)).toBe(origin);
    expect(await allowedTo(open, "https://evil.example.com")).toBeNull();
  });

  it("gets an answer to its preflight request, without cookies", async () => {
    const { request } = await setUp({ corsOrigins: [origin] });
    const headers = { origin, "access-control-request-method": "PUT" };
    const preflight = await request("OPTIONS", "/v1/sandboxes", { key: undefined, headers });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Authorization");
    expect(preflight.headers.has("access-control-allow-credentials")).toBe(false);
    const other = { ...headers, origin: "https://evil.example.com" };
    expect((await request("OPTIONS", "/v1/sandboxes", { key: undefined, headers: other })).status).toBe(405);
  });
});

describe("the audit log", () => {
  it("records changes and refusals, but no reads", async () => {
    const node = await setUp();
    const { id } = await node.create();
    await node.request("GET", `/v1/sandboxes/${id}`);
    await node.request("DELETE", `/v1/sandboxes/${id}`, { key: undefined, headers: { "x-request-id": "no" } });
    const other = node.key({ tenant: "other" });
    await node.request("DELETE", `/v1/sandboxes/${id}`, { key: other });
    const admin = node.key({ scopes: ["admin"] });
    const answer = await (await node.request("GET", "/v1/audit", { key: admin })).json();
    const { items } = routes.listAudit.answer.schema.parse(answer);
    const actor = node.owner.split("_")[1];
    expect(items).toMatchObject([
      { operation: "createSandbox", actor, tenant: "mine", sandboxId: id, status: 201 },
      { operation: "deleteSandbox", actor: null, tenant: null, sandboxId: id, status: 401, requestId: "no" },
      { operation: "deleteSandbox", actor: other.split("_")[1], tenant: "other", sandboxId: id, status: 404 },
    ]);
  });
});

describe("an anonymous caller", () => {
  it("cannot evict other entries from the audit log", async () => {
    const node = await setUp();
    await node.create();
    for (let turn = 0; turn < 100; turn++) await node.request("POST", "/v1/sandboxes", { key: "wrong", json: {} });
    const entries = node.audit.list({ after: 0, limit: 1000 });
    expect(entries.filter(({ status }) => status === 401)).toHaveLength(10);
    expect(entries[0]).toMatchObject({ operation: "createSandbox", status: 201 });
  });
});

describe("an error of a handler", () => {
  it("reaches the caller with its hint and details", async () => {
    const error = SandboxError.fromFields({
      code: "resource_exhausted",
      reason: "quota_exceeded",
      message: "no more",
      hint: "less",
      details: { limit: 1 },
    });
    const fail = () => Promise.reject(error);
    const keys = { create: fail, list: () => [], update: fail, revoke: fail, tenants: () => [], updateTenant: fail };
    const node = await setUp({ keys });
    const key = node.key({ scopes: ["admin"] });
    expect(await errorOf(await node.request("POST", "/v1/keys", { key, json: { name: "x" } }))).toMatchObject({
      status: 429,
      code: "resource_exhausted",
      reason: "quota_exceeded",
      hint: "less",
      details: { limit: 1 },
    });
  });
});
