import { connect } from "node:net";
import { FakeClock, rejection } from "@sandpiper/core/testing";
import { createSandboxId, errorBodySchema, type SandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sendNudge } from "../cluster/nudge.ts";
import { untilSettled } from "../testing/until-settled.ts";
import { ClusterNodes } from "./testing/cluster-nodes.ts";

let nodes: ClusterNodes;
let id: SandboxId;

beforeEach(() => {
  nodes = new ClusterNodes();
  id = createSandboxId();
});

afterEach(() => nodes[Symbol.asyncDispose]());

const authorization = "Bearer spk_0a1b2c3d_key";
const pathTo = (rest = "") => `/v1/sandboxes/${id}${rest}`;

/** Answers with its name and the request. */
function echo(name: string) {
  return async (request: Request) =>
    Response.json({
      name,
      method: request.method,
      url: request.url.slice(request.url.indexOf("/v1")),
      headers: Object.fromEntries(request.headers),
      body: await request.text(),
    });
}

/** Two nodes, of which the second owns the sandbox and gives this answer. `ask` asks the first about the sandbox. */
async function twoNodes(answer: Parameters<ClusterNodes["start"]>[1] = echo("owner"), clock?: FakeClock) {
  const [here, owner] = [await nodes.start("1", echo("here"), clock), await nodes.start("2", answer)];
  nodes.holders.set(id, "2");
  const ask = (rest = "", { headers, ...init }: RequestInit & { headers?: Record<string, string> } = {}) =>
    fetch(`${here}${pathTo(rest)}`, { ...init, headers: { authorization, ...headers } });
  return { here, owner, ask };
}

describe("a request about a sandbox of another node", () => {
  it("reaches that node unchanged", async () => {
    const { owner, ask } = await twoNodes();
    const response = await ask("/files?path=a%20b&x=%C3%A4", {
      method: "PUT",
      headers: { "x-request-id": "mine-1", "content-type": "text/plain", "proxy-connection": "close" },
      body: "content",
    });
    expect(await response.json()).toMatchObject({
      name: "owner",
      method: "PUT",
      url: pathTo("/files?path=a%20b&x=%C3%A4"),
      body: "content",
      headers: { authorization, "x-request-id": "mine-1", "content-type": "text/plain", host: new URL(owner).host },
    });
  });

  it("gets a request id if it has none, and loses hop-by-hop headers", async () => {
    const { here, ask } = await twoNodes();
    const { headers } = await echoed(ask());
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
    const raw = connect(Number(new URL(here).port), "127.0.0.1");
    const head = [
      `GET ${pathTo()} HTTP/1.1`,
      "Host: x",
      `Authorization: ${authorization}`,
      "Connection: close, X-Mine",
      "X-Mine: 1",
      "X-Other: 2",
      "TE: trailers",
    ];
    raw.write(`${head.join("\r\n")}\r\n\r\n`);
    const text = Buffer.concat(await Array.fromAsync(raw)).toString();
    expect(text).toContain('"x-other":"2"');
    expect(text).not.toMatch(/x-mine|"te"/);
  });

  it("returns the answer's status, headers and cookies, also without a body", async () => {
    const { ask } = await twoNodes((request) => {
      const headers = new Headers({ "content-range": "bytes 0-1/5", "x-own": "1" });
      headers.append("set-cookie", "a=1");
      headers.append("set-cookie", "b=2");
      if (request.method === "HEAD") headers.set("content-length", "5");
      return new Response(request.method === "GET" ? "ab" : null, {
        status: { GET: 206, HEAD: 200, DELETE: 204 }[request.method] ?? 500,
        headers,
      });
    });
    const got = await ask();
    expect([got.status, await got.text()]).toEqual([206, "ab"]);
    expect(got.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(got.headers.get("content-range")).toBe("bytes 0-1/5");
    expect((await ask("", { method: "HEAD" })).headers.get("content-length")).toBe("5");
    expect((await ask("", { method: "DELETE" })).status).toBe(204);
  });

  it("streams both bodies at the same time", async () => {
    const { ask } = await twoNodes((request) => new Response(request.body));
    const upload = new TransformStream<Uint8Array, Uint8Array>();
    const writer = upload.writable.getWriter();
    const encoder = new TextEncoder();
    const first = writer.write(encoder.encode("one"));
    const response = await ask("", { method: "POST", body: upload.readable, duplex: "half" } as object);
    await first;
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe("one");
    await writer.write(encoder.encode("two"));
    expect((await reader?.read())?.value).toBe("two");
    await writer.close();
    expect((await reader?.read())?.done).toBe(true);
  });

  it("reads the answer no faster than the client", async () => {
    let made = 0;
    const piece = new Uint8Array(64 * 1024);
    const { ask } = await twoNodes(() => {
      const pull = (controller: ReadableStreamDefaultController) => {
        made++;
        controller.enqueue(piece);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
    });
    const reader = (await ask()).body?.getReader();
    await reader?.read();
    await untilSettled(() => made);
    expect(made, "what the buffers on the way hold").toBeLessThan(512);
    await reader?.cancel();
  });

  it("is canceled when its client leaves, before the answer or during it", async () => {
    const left: string[] = [];
    const arrived = Promise.withResolvers<void>();
    const { ask } = await twoNodes((request) => {
      const path = request.url.slice(request.url.indexOf(id) + id.length);
      request.signal.addEventListener("abort", () => left.push(path));
      arrived.resolve();
      if (path === "/wait") return new Promise<Response>(() => {});
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) }));
    });
    const leaving = new AbortController();
    const waiting = ask("/wait", { signal: leaving.signal });
    await arrived.promise;
    leaving.abort();
    await rejection(waiting);
    const reader = (await ask("/events")).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await expect.poll(() => left.toSorted()).toEqual(["/events", "/wait"]);
  });

  it("fails when the owner's answer is truncated", async () => {
    let cut = () => {};
    const { ask } = await twoNodes((_, { outgoing }) => {
      cut = () => outgoing?.destroy();
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) }));
    });
    const response = await ask();
    cut();
    expect(await rejection(response.arrayBuffer())).toMatchObject({ message: "terminated" });
  });

  it("fails with a retryable error when its node does not answer", async () => {
    const { ask } = await twoNodes();
    await nodes.stop("2");
    const response = await ask("/exec", { method: "POST", headers: { "x-request-id": "mine-2" }, body: "{}" });
    expect(response.status).toBe(503);
    expect(response.headers.get("x-request-id")).toBe("mine-2");
    expect(errorBodySchema.parse(await response.json())).toMatchObject({
      code: "unavailable",
      reason: "owner_unreachable",
      requestId: "mine-2",
    });
  });

  it("succeeds when the other node has closed a kept-alive connection", async () => {
    const known = new Set<unknown>();
    let cut = 0;
    const { ask } = await twoNodes((_, { incoming }) => {
      if (!known.has(incoming?.socket)) {
        known.add(incoming?.socket);
        return new Response("ok");
      }
      cut++;
      incoming?.socket.destroy();
      return new Promise<Response>(() => {});
    });
    for (let round = 0; round < 3; round++) expect(await (await ask()).text()).toBe("ok");
    expect(cut).toBe(2);
  });

  it("fails when its node hangs and has lost the sandbox", async () => {
    const clock = new FakeClock();
    const arrived = Promise.withResolvers<void>();
    const { ask } = await twoNodes(() => {
      arrived.resolve();
      return new Promise<Response>(() => {});
    }, clock);
    const waiting = ask("/wait");
    await arrived.promise;
    await clock.advance(5000);
    nodes.holders.delete(id);
    await clock.advance(1000);
    expect((await waiting).status).toBe(503);
  });
});

describe("a forwarded request", () => {
  it("is refused without a valid proof", async () => {
    const { owner } = await twoNodes();
    const proof = nodes.proofOf("1").sign({ method: "GET", path: "/v1/sandboxes" }, owner);
    const response = await fetch(`${owner}${pathTo()}`, { headers: { authorization, "x-sandpiper-node": proof } });
    expect(response.status).toBe(401);
    expect(errorBodySchema.parse(await response.json())).toMatchObject({ reason: "bad_node_proof" });
  });

  it("carries the client's credential, which the owner checks", async () => {
    const { ask } = await twoNodes();
    const { headers } = await echoed(ask());
    expect(headers["authorization"]).toBe(authorization);
    expect(headers["x-sandpiper-node"]).toMatch(/^00000000-0000-4000-8000-000000000001 /);
  });
});

describe("a nudge", () => {
  it("reaches the other node", async () => {
    const { owner } = await twoNodes();
    await sendNudge(owner, id, nodes.proofOf("1"));
    expect(nodes.nudges).toEqual([`2 ${id}`]);
  });

  it("is refused without a valid proof, and clients find nothing at its path", async () => {
    const { owner } = await twoNodes();
    const post = (headers: Record<string, string>, body: string) =>
      fetch(`${owner}/v1/cluster/nudge`, { method: "POST", headers: { authorization, ...headers }, body });
    expect(await (await post({}, "{}")).json()).toMatchObject({ name: "owner" });
    expect((await post({ "x-sandpiper-node": "x" }, JSON.stringify({ sandbox: id }))).status).toBe(401);
    expect((await post({ "x-sandpiper-node": "x" }, "x".repeat(2000))).status).toBe(400);
    expect(nodes.nudges).toEqual([]);
  });

  it("fails when the other node is not running", async () => {
    const { owner } = await twoNodes();
    await nodes.stop("2");
    expect(await rejection(sendNudge(owner, id, nodes.proofOf("1")))).toMatchObject({ reason: "owner_unreachable" });
  });
});

async function echoed(answer: Promise<Response>) {
  return (await (await answer).json()) as { readonly name: string; readonly headers: Record<string, string> };
}
