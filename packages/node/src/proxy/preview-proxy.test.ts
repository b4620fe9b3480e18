import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

let bed: PreviewBed;
beforeAll(async () => {
  bed = await PreviewBed.start(new MockProvider());
});
afterAll(() => bed[Symbol.asyncDispose]());

/** A server that reports the request it got. */
const mirror = () => async (request: IncomingMessage, response: import("node:http").ServerResponse) => {
  const body = Buffer.concat(await request.toArray()).toString();
  const { method, url, headers, rawTrailers } = request;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ method, url, headers, body, rawTrailers }));
};

describe("a preview", () => {
  it("relays requests to a port of a sandbox under a host name of its own", async () => {
    const sandbox = await bed.sandbox(mirror());
    const answer = await bed.askAsOwner(sandbox, "/a%20b?c=d&e", { method: "POST", body: "hello" });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.text)).toMatchObject({ method: "POST", url: "/a%20b?c=d&e", body: "hello" });
  });

  it("is also below the node's own address", async () => {
    const sandbox = await bed.sandbox(mirror());
    const answer = await bed.askByPath(sandbox, "/x?y=1");
    expect(JSON.parse(answer.text)).toMatchObject({
      url: "/x?y=1",
      headers: { "x-forwarded-prefix": `/v1/sandboxes/${sandbox.id}/ports/${PORT}` },
    });
  });

  it("tells the server that it is at its own address, and where the client sees it", async () => {
    const sandbox = await bed.sandbox(mirror());
    const origin = `http://${bed.hostOf(sandbox)}`;
    const { text } = await bed.askAsOwner(sandbox, "/", {
      headers: { origin, referer: `${origin}/page`, "x-forwarded-for": "9.9.9.9", "x-forwarded-host": "evil" },
    });
    expect(JSON.parse(text).headers).toMatchObject({
      host: `localhost:${PORT}`,
      origin: `http://localhost:${PORT}`,
      referer: `http://localhost:${PORT}/page`,
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-host": bed.hostOf(sandbox),
      "x-forwarded-proto": "http",
    });
  });

  it("passes the origin of other sites on unchanged", async () => {
    const sandbox = await bed.sandbox(mirror());
    const { text } = await bed.askAsOwner(sandbox, "/", { headers: { origin: "https://evil.example" } });
    expect(JSON.parse(text).headers.origin).toBe("https://evil.example");
  });

  it("answers HEAD without a body", async () => {
    const sandbox = await bed.sandbox((_, response) => response.writeHead(200, { "content-length": 5 }).end());
    const answer = await bed.askAsOwner(sandbox, "/", { method: "HEAD" });
    expect([answer.status, answer.headers["content-length"], answer.text]).toEqual([200, "5", ""]);
  });

  it("relays trailers in both directions", async () => {
    const sandbox = await bed.sandbox(async (request, response) => {
      await request.toArray();
      response.write("body");
      response.addTrailers({ "x-sum": `seen ${request.trailers["x-up"]}` });
      response.end();
    });
    const headers = { authorization: `Bearer ${bed.key}`, "transfer-encoding": "chunked" };
    const outgoing = bed.open(bed.hostOf(sandbox), "/", { method: "POST", headers });
    outgoing.write("x");
    outgoing.addTrailers({ "x-up": "1" });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    await incoming.toArray();
    expect(incoming.trailers).toEqual({ "x-sum": "seen 1" });
  });

  it("lets the server decide whether a client may send its body", async () => {
    const sandbox = await bed.create();
    const { createServer } = await import("node:http");
    const server = createServer(mirror());
    server.on("checkContinue", (request, response) => {
      if (request.headers["x-refuse"] !== undefined) response.writeHead(417).end();
      else {
        response.writeContinue();
        server.emit("request", request, response);
      }
    });
    await bed.serve(sandbox, server);
    const send = async (more: object) => {
      const headers = { authorization: `Bearer ${bed.key}`, expect: "100-continue", "content-length": 4, ...more };
      const outgoing = bed.open(bed.hostOf(sandbox), "/", { method: "POST", headers });
      outgoing.flushHeaders();
      let continued = false;
      outgoing.once("continue", () => {
        continued = true;
        outgoing.end("body");
      });
      const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
      const text = String(Buffer.concat(await incoming.toArray()));
      outgoing.destroy();
      return { continued, status: incoming.statusCode, text };
    };
    expect(await send({})).toMatchObject({ continued: true, status: 200, text: expect.stringContaining('"body"') });
    expect(await send({ "x-refuse": "1" })).toMatchObject({ continued: false, status: 417 });
  });

  it("ends the request in the sandbox when the client leaves", async () => {
    const left = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const sandbox = await bed.sandbox((_, response) => {
      response.write("first");
      response.once("close", () => left.resolve());
      arrived.resolve();
    });
    const outgoing = bed.open(bed.hostOf(sandbox), "/", { headers: { authorization: `Bearer ${bed.key}` } });
    outgoing.on("error", () => {}).end();
    await arrived.promise;
    outgoing.destroy();
    await left.promise;
  });

  it("streams server-sent events as they are sent", async () => {
    const next = Promise.withResolvers<void>();
    const sandbox = await bed.sandbox(async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      await next.promise;
      response.write("data: 1\n\n");
    });
    const outgoing = bed.open(bed.hostOf(sandbox), "/", { headers: { authorization: `Bearer ${bed.key}` } });
    outgoing.end();
    const [incoming] = (await once(outgoing, "response")) as [IncomingMessage];
    next.resolve();
    expect(String((await once(incoming, "data"))[0])).toBe("data: 1\n\n");
    outgoing.destroy();
  });

  it("reuses connections into the sandbox", async () => {
    const sockets = new Set<unknown>();
    const sandbox = await bed.sandbox((request, response) => {
      sockets.add(request.socket);
      response.end("ok");
    });
    for (let count = 0; count < 5; count++) await bed.askAsOwner(sandbox, "/");
    expect(sockets.size).toBe(1);
  });

  it("closes the client's connection when the answer is cut short", async () => {
    const sandbox = await bed.rawSandbox((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"));
    });
    await expect(bed.askAsOwner(sandbox, "/")).rejects.toThrow(/aborted|hang up|ECONNRESET/);
  });
});
