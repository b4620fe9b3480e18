import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "../client.ts";
import { createMemoryServer } from "../testing/create-memory-server.ts";
import { ManualTiming } from "../testing/manual-timing.ts";

/** A client whose next requests are lost before or after they reach the server. */
function badNetwork() {
  const server = createMemoryServer();
  const timing = new ManualTiming();
  const lost: ("request" | "answer" | "503" | { readonly reason: string } | { readonly afterSeconds: number })[] = [];
  const requests: string[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    requests.push(`${init?.method} ${new URL(String(input)).pathname}`);
    const what = lost.shift();
    if (what === "503") return new Response("busy", { status: 503 });
    if (typeof what === "object" && "afterSeconds" in what) return limited(what.afterSeconds);
    if (typeof what === "object") return Response.json(unavailable(what.reason), { status: 503 });
    const answer = what === "request" ? undefined : await server.clientOptions.fetch(input, init);
    if (what !== undefined) throw new TypeError("fetch failed", { cause: { code: "ECONNRESET" } });
    return answer as Response;
  };
  return { server, timing, lost, requests, client: new Client({ ...server.clientOptions, fetch, timing }) };
}

function unavailable(reason: string) {
  return { code: "unavailable", reason, message: "?", details: {}, requestId: "r" };
}

function limited(afterSeconds: number): Response {
  const body = { code: "resource_exhausted", reason: "rate_limited", message: "?", details: {}, requestId: "r" };
  const headers = afterSeconds === 0 ? {} : { "retry-after": String(afterSeconds) };
  return Response.json(body, { status: 429, headers });
}

const times = <What>(count: number, what: What): What[] => Array.from({ length: count }, () => what);

async function inTime<Value>(timing: ManualTiming, call: Promise<Value>): Promise<Value> {
  call.catch(() => {});
  await timing.advance(10_000);
  return await call;
}

describe("a request that got lost", () => {
  it("is retried when it is idempotent", async () => {
    const { server, timing, lost, client } = badNetwork();
    lost.push("request", "answer", "503");
    const sandbox = await inTime(timing, client.sandboxes.create({ name: "one" }));
    expect(server.sandboxes.map(({ id }) => id)).toEqual([sandbox.id]);
    lost.push("answer");
    await inTime(timing, sandbox.files.write("/a", "text"));
    lost.push("request", "503");
    expect(await inTime(timing, sandbox.files.readText("/a"))).toBe("text");
    lost.push("answer");
    expect(await inTime(timing, sandbox.pause())).toMatchObject({ state: "paused" });
    lost.push("answer");
    expect(await inTime(timing, sandbox.resume())).toMatchObject({ state: "ready" });
    lost.push("answer");
    await inTime(timing, sandbox.destroy());
    expect(server.sandboxes).toEqual([]);
  });

  it("is not retried when it is not idempotent", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    await sandbox.files.write("/a", "text");
    requests.length = 0;
    lost.push("answer");
    const moved = await rejection(inTime(timing, sandbox.files.move("/a", "/b")));
    expect(moved).toMatchObject({ code: "unavailable", reason: "node_unreachable" });
    lost.push("answer");
    await rejection(inTime(timing, sandbox.files.write("/c", [new Uint8Array(3)])));
    expect(requests).toHaveLength(2);
  });

  it("fails after a few seconds, with the next step", async () => {
    const { timing, lost, requests, client } = badNetwork();
    lost.push(...Array.from({ length: 20 }, () => "request" as const));
    const error = await rejection(inTime(timing, client.sandboxes.connect("x")));
    expect(error).toMatchObject({ code: "unavailable", reason: "node_unreachable" });
    expect(error.hint).toContain("npm start");
    expect(requests).toHaveLength(7);
    expect(timing.pending).toBe(0);
  });

  it("is not retried when it asks for a node's health", async () => {
    const { lost, client } = badNetwork();
    lost.push("request");
    expect(await rejection(client.health())).toMatchObject({ reason: "node_unreachable" });
    expect(await client.health()).toEqual({ status: "ok", version: "memory" });
  });
});

describe("a request about a sandbox that moves to another node", () => {
  it.each(["restoring", "handoff_under_way", "owner_unreachable", "sandbox_moved"])(
    "is repeated while the answer is %s",
    async (reason) => {
      const { timing, lost, requests, client } = badNetwork();
      const { id } = await client.sandboxes.create();
      const fresh = badNetwork();
      lost.push(...times(20, { reason }));
      const call = client.sandboxes.connect(id);
      await timing.advance(50_000);
      expect((await call).id).toBe(id);
      expect(requests).toHaveLength(22);

      fresh.lost.push(...times(1000, { reason }));
      const failing = fresh.client.sandboxes.connect(id);
      failing.catch(() => {});
      await fresh.timing.advance(59_000);
      const asked = fresh.requests.length;
      await fresh.timing.advance(10_000);
      expect(await rejection(failing)).toMatchObject({ code: "unavailable", reason });
      expect(fresh.requests.length - asked).toBeLessThanOrEqual(2);
    },
  );

  it("is repeated, even if it is not idempotent, when the sandbox had moved before the node began it", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    requests.length = 0;
    lost.push(...times(3, { reason: "sandbox_moved" }));
    const call = sandbox.checkpoint();
    call.catch(() => {});
    await timing.advance(30_000);
    await call.catch(() => {});
    expect(requests.filter((request) => request.includes("checkpoints"))).toHaveLength(4);
  });

  it("is not repeated when it may have begun and is not idempotent", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    requests.length = 0;
    const calls: (() => Promise<unknown>)[] = [
      () => sandbox.checkpoint(),
      () => sandbox.fork(),
      () => sandbox.rollback(),
    ];
    for (const call of calls) {
      lost.push({ reason: "restoring" });
      expect(await rejection(inTime(timing, call()))).toMatchObject({ reason: "restoring" });
    }
    expect(requests).toHaveLength(3);
  });

  it("survives the replacement of a node that has answered before", async () => {
    const { timing, lost, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    lost.push(...times(8, "request" as const), ...times(8, "503" as const));
    const call = sandbox.refresh();
    await timing.advance(40_000);
    expect((await call).id).toBe(sandbox.id);
  });

  it("is retried only briefly when the node is busy", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    requests.length = 0;
    lost.push(...times(20, { reason: "agent_timeout" }));
    expect(await rejection(inTime(timing, sandbox.refresh()))).toMatchObject({ reason: "agent_timeout" });
    expect(requests).toHaveLength(7);
  });
});

describe("a request that a limit refused", () => {
  it("is repeated after the time that the node names, even if it is not idempotent", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    await sandbox.files.write("/a", "text");
    requests.length = 0;
    lost.push({ afterSeconds: 7 });
    const call = sandbox.files.move("/a", "/b");
    await timing.advance(6900);
    expect(requests).toHaveLength(1);
    await timing.advance(200);
    await call;
    expect(requests).toHaveLength(2);
  });

  it("fails when the node names no time, a time that is too long, or refuses it too often", async () => {
    const { timing, lost, requests, client } = badNetwork();
    const sandbox = await client.sandboxes.create();
    for (const [afterSeconds, attempts] of [
      [0, 1],
      [120, 1],
      [1, 7],
    ] as const) {
      requests.length = 0;
      lost.push(...times(attempts, { afterSeconds }));
      expect(await rejection(inTime(timing, sandbox.refresh()))).toMatchObject({ reason: "rate_limited" });
      expect(requests).toHaveLength(attempts);
    }
  });
});

describe("a request", () => {
  it("can be canceled, even between two attempts", async () => {
    const { timing, lost, client } = badNetwork();
    lost.push(...Array.from({ length: 20 }, () => "request" as const));
    const abort = new AbortController();
    const call = client.sandboxes.connect("x", { signal: abort.signal });
    await timing.advance(10);
    abort.abort();
    expect(await rejection(call)).toMatchObject({ code: "canceled" });
    expect(timing.pending).toBe(0);
  });

  it("fails with the node's error", async () => {
    const { client } = badNetwork();
    expect(await rejection(client.sandboxes.connect("x"))).toMatchObject({
      code: "not_found",
      reason: "no_such_sandbox",
      message: "sandbox x not found",
      details: { requestId: "memory" },
    });
  });

  it("reports an answer that does not come from a node", async () => {
    const { clientOptions } = createMemoryServer();
    const fetch = async () => new Response("<html>", { status: 404 });
    const error = await rejection(new Client({ ...clientOptions, fetch }).sandboxes.connect("x"));
    expect(error).toMatchObject({ code: "not_found", reason: "unexpected_answer" });
  });

  it.each(["", ".", ".."])("never reaches another path for the id %j", async (id) => {
    const { client, requests } = badNetwork();
    expect(await rejection(client.sandboxes.connect(id))).toMatchObject({ code: "invalid_argument" });
    expect(requests).toEqual([]);
  });
});

describe("the options of a client", () => {
  it("report an invalid address", () => {
    expect(() => new Client({ url: "localhost:4747" })).toThrow(
      'url "localhost:4747" is not the http or https address of a node',
    );
  });

  it("may have an address with a path", () => {
    expect(new Client({ url: "http://host:1/base/" }).url).toBe("http://host:1/base");
  });
});
