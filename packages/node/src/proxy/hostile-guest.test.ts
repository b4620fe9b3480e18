import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilSettled } from "../testing/until-settled.ts";
import { PORT, PreviewBed } from "./testing/preview-bed.ts";

let bed: PreviewBed;
beforeAll(async () => {
  bed = await PreviewBed.start(new MockProvider());
});
afterAll(() => bed[Symbol.asyncDispose]());

/** A server that answers each request with these bytes. */
const answering = (text: string) => (socket: Socket) => void socket.on("data", () => socket.end(text));

describe("a hostile server behind a preview", () => {
  it.each([
    ["bytes that are not HTTP", "\x00\x01\x02 what\r\n\r\n"],
    ["an invalid status line", "HTTP/1.1 abc Odd\r\n\r\n"],
    ["a status of two digits", "HTTP/1.1 20 OK\r\n\r\n"],
    ["headers without end", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(20_000)}\r\n\r\n`],
    ["too many headers", `HTTP/1.1 200 OK\r\n${"a: b\r\n".repeat(20_000)}\r\n`],
    ["a line break in a header", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b=c\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["another protocol", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"],
    ["nothing", ""],
  ])("gets a page about it for %s", async (_, text) => {
    const sandbox = await bed.rawSandbox(answering(text));
    const answer = await bed.askAsOwner(sandbox, "/", { headers: { accept: "text/html" } });
    expect(answer.status).toBe(502);
    expect(answer.text).toContain("bad_guest_response");
    expect(answer.headers["set-cookie"]).toBeUndefined();
  });

  it("cannot send anything to the next client with bytes after its answer", async () => {
    const sandbox = await bed.rawSandbox((socket) => {
      let count = 0;
      socket.on("data", () => {
        const body = `answer ${++count}`;
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
        setImmediate(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"));
      });
    });
    for (let count = 0; count < 5; count++) expect((await bed.askAsOwner(sandbox, "/")).text).not.toBe("poison");
  });

  it("sends no more of an endless body than the client reads", async () => {
    let sentBytes = 0;
    const sandbox = await bed.rawSandbox((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        const flood = () => {
          while (!socket.destroyed && socket.write("x".repeat(65_536), () => (sentBytes += 65_536)));
        };
        socket.on("drain", flood);
        flood();
      });
    });
    const outgoing = bed.open(bed.hostOf(sandbox), "/", { headers: { authorization: `Bearer ${bed.key}` } });
    outgoing.end();
    await once(outgoing, "response");
    await untilSettled(() => sentBytes);
    expect(sentBytes).toBeLessThan(32 * 1024 * 1024);
    outgoing.destroy();
  });

  it("cannot set cookies of the node, or for more than its own origin", async () => {
    const cookies = ["a=1; Domain=localhost; Path=/", "SANDPIPER_NODE=x", "__Host-sandpiper-preview=y; Secure; Path=/"];
    const sandbox = await bed.sandbox((_, response) => response.writeHead(200, { "set-cookie": cookies }).end());
    expect((await bed.askAsOwner(sandbox, "/")).headers["set-cookie"]).toEqual(["a=1; Path=/"]);
  });

  it("gets no cookies below the node's address, sets none there, and its pages get an origin of their own", async () => {
    let seen: IncomingMessage["headers"] = {};
    const sandbox = await bed.sandbox((request, response) => {
      seen = request.headers;
      response.writeHead(200, {
        "set-cookie": "a=1",
        "content-security-policy": "default-src *",
        "clear-site-data": '"*"',
        "www-authenticate": "Basic",
        "service-worker-allowed": "/",
        "alt-svc": 'h3=":443"',
      });
      response.end("<script>1</script>");
    });
    const answer = await bed.askByPath(sandbox, "/", { headers: { cookie: "session=node" } });
    expect(seen.cookie).toBeUndefined();
    for (const name of ["set-cookie", "clear-site-data", "www-authenticate", "service-worker-allowed", "alt-svc"]) {
      expect(answer.headers).not.toHaveProperty(name);
    }
    // Browsers enforce every policy, so that of the guest cannot loosen it.
    expect(answer.headers["content-security-policy"]).toMatch(
      /^default-src \*, sandbox allow-scripts (?!.*same-origin)/,
    );
  });

  it("cannot install a service worker below the node's address", async () => {
    const sandbox = await bed.sandbox((_, response) => response.end("self"));
    const { status } = await bed.askByPath(sandbox, "/sw.js", { headers: { "service-worker": "script" } });
    expect(status).toBe(403);
  });

  it("has its redirects to its own address lead to the preview, and others where they say", async () => {
    const sandbox = await bed.sandbox((request, response) => {
      response.writeHead(302, { location: decodeURIComponent(request.url?.slice(2) ?? "") }).end();
    });
    const go = async (to: string) => (await bed.askAsOwner(sandbox, `/?${encodeURIComponent(to)}`)).headers.location;
    const origin = `http://${bed.hostOf(sandbox)}`;
    expect(await go(`http://localhost:${PORT}/a?b`)).toBe(`${origin}/a?b`);
    expect(await go(`http://127.0.0.1:${PORT}`)).toBe(`${origin}/`);
    expect(await go("http://localhost:9/x")).toBe("http://localhost:9/x");
    expect(await go("/next")).toBe("/next");
    const { headers } = await bed.askByPath(sandbox, "/?%2Fnext");
    expect(headers.location).toBe(`/v1/sandboxes/${sandbox.id}/ports/${PORT}/next`);
  });
});
