import { once } from "node:events";
import {
  Agent,
  createServer as createHttpServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
} from "node:http";
import { createServer } from "node:https";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { createServer as createTlsServer } from "node:tls";
import { expect, it } from "vitest";
import type { UsableSecret } from "./inject.ts";
import { HOST, listen, relayed, serverContext } from "./testing/relayed-world.ts";

const SECRET = "sk-real-0123456789";
const PLACEHOLDER = "sandpiper-secret-abc";
const bearer: UsableSecret = {
  placeholder: PLACEHOLDER,
  value: SECRET,
  inject: { header: "Authorization", format: "Bearer {}" },
};
const replaced: UsableSecret = {
  placeholder: PLACEHOLDER,
  value: SECRET,
  inject: { replaceIn: ["header", "query", "path"] },
};

it("sets the header of each request on a connection that stays open", async () => {
  const seen: (string | undefined)[] = [];
  const flow = await relayed({
    secrets: [bearer],
    to: await https((request, response) => {
      seen.push(request.headers.authorization);
      response.end(`answer ${seen.length}`);
    }),
  });
  const socket = flow.secure();
  expect(await (await get(socket, "/one?q=1", { Authorization: "Bearer mine" })).body).toBe("answer 1");
  expect(await (await get(socket, "/two")).body).toBe("answer 2");
  expect(seen).toEqual([`Bearer ${SECRET}`, `Bearer ${SECRET}`]);
  expect(flow.requests).toEqual([
    { method: "GET", path: "/one", status: 200 },
    { method: "GET", path: "/two", status: 200 },
  ]);
  socket.end();
  expect(await flow.done).toBeUndefined();
});

it("replaces the placeholder in headers, Basic credentials, query and path, and nowhere else", async () => {
  let seen: IncomingMessage | undefined;
  let body = "";
  const flow = await relayed({
    secrets: [replaced],
    to: await https(async (request, response) => {
      seen = request;
      body = await text(request);
      response.end();
    }),
  });
  const basic = (password: string) => `Basic ${Buffer.from(`user:${password}`).toString("base64")}`;
  const headers = { "X-Key": `k=${PLACEHOLDER}`, Authorization: basic(PLACEHOLDER) };
  await send(flow.secure(), { method: "POST", path: `/bot${PLACEHOLDER}/x?key=${PLACEHOLDER}`, headers }, PLACEHOLDER);
  expect(seen?.url).toBe(`/bot${SECRET}/x?key=${SECRET}`);
  expect(seen?.headers).toMatchObject({ "x-key": `k=${SECRET}`, authorization: basic(SECRET) });
  expect(body).toBe(PLACEHOLDER);
  expect(flow.requests).toEqual([{ method: "POST", path: `/bot${PLACEHOLDER}/x`, status: 200 }]);
});

it("hides the secret in the headers of an answer", async () => {
  const flow = await relayed({
    secrets: [replaced],
    to: await https((request, response) =>
      response.writeHead(302, { location: `https://${HOST}${request.url}` }).end(),
    ),
  });
  const { headers } = await get(flow.secure(), `/?key=${PLACEHOLDER}`);
  expect(headers.location).toBe(`https://${HOST}/?key=${PLACEHOLDER}`);
});

it("refuses a request that names another host than its connection", async () => {
  let count = 0;
  const flow = await relayed({ secrets: [bearer], to: await https((_, response) => response.end(`${++count}`)) });
  const { statusCode, body } = await get(flow.secure(), "/", { Host: "other.example.com" });
  expect(statusCode).toBe(421);
  expect(await body).toContain("the request names another host");
  expect(count).toBe(0);
});

it("refuses a connection whose TLS names another host", async () => {
  const flow = await relayed({ secrets: [bearer], to: await https((_, response) => response.end()) });
  const [error] = await once(flow.secure({ servername: "other.example.com" }), "error");
  expect(error).toBeInstanceOf(Error);
  expect(await flow.done).toBe("tls_name_mismatch");
});

it("sends nothing to a server whose certificate it cannot verify, and says so inside", async () => {
  let count = 0;
  const server = createServer(
    { SNICallback: (_, done) => done(null, serverContext("other.example.com")) },
    (_, response) => {
      count++;
      response.end();
    },
  );
  const flow = await relayed({ secrets: [bearer], to: await listen(server) });
  const { statusCode, body } = await get(flow.secure(), "/");
  expect(statusCode).toBe(502);
  expect(await body).toContain(`cannot verify that the server is ${HOST} (ERR_TLS_CERT_ALTNAME_INVALID)`);
  expect(await flow.done).toBe("untrusted_server");
  expect(count).toBe(0);
});

it("answers 502 when the server cannot be reached", async () => {
  const flow = await relayed({ secrets: [bearer], to: 1 });
  expect((await get(flow.secure(), "/")).statusCode).toBe(502);
  expect(await flow.done).toBe("connect_failed");
});

it("streams an answer while the server still writes it, and a body while the sandbox still sends it", async () => {
  const flow = await relayed({
    secrets: [bearer],
    to: await https((request, response) =>
      request.on("data", (chunk: Buffer) => response.write(`got ${chunk};`)).on("end", () => response.end("end")),
    ),
  });
  const request = begin(flow.secure(), { method: "POST", path: "/", headers: { "Transfer-Encoding": "chunked" } });
  request.write("a");
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  const chunks = answer[Symbol.asyncIterator]();
  expect(String((await chunks.next()).value)).toBe("got a;");
  request.write("b");
  expect(String((await chunks.next()).value)).toBe("got b;");
  request.end();
  expect(String((await chunks.next()).value)).toBe("end");
});

it("asks the server before a body that waits for 100 Continue", async () => {
  const server = createServer({ SNICallback: (_, done) => done(null, serverContext()) });
  server.on("checkContinue", async (request, response) => {
    response.writeContinue();
    response.end(await text(request));
  });
  const flow = await relayed({ secrets: [bearer], to: await listen(server) });
  const headers = { Expect: "100-continue", "Content-Length": "4" };
  const request = begin(flow.secure(), { method: "PUT", path: "/", headers });
  request.flushHeaders();
  await once(request, "continue");
  request.end("body");
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  expect(await text(answer)).toBe("body");
});

it("passes an upgraded connection through, in both directions", async () => {
  const server = createServer({ SNICallback: (_, done) => done(null, serverContext()) });
  server.on("upgrade", (request, socket: Duplex) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Seen: ${request.headers.authorization === `Bearer ${SECRET}`}\r\n\r\nhello `,
    );
    socket.pipe(socket);
  });
  const flow = await relayed({ secrets: [bearer], to: await listen(server) });
  const request = begin(flow.secure(), { path: "/", headers: { Connection: "Upgrade", Upgrade: "echo" } });
  request.end();
  const [answer, socket, head] = (await once(request, "upgrade")) as [IncomingMessage, Duplex, Buffer];
  expect(answer.headers["x-seen"]).toBe("true");
  socket.unshift(head);
  socket.write("world");
  let received = "";
  for await (const chunk of socket) {
    received += chunk;
    if (received.length === 11) break;
  }
  expect(received).toBe("hello world");
  expect(flow.requests).toEqual([{ method: "GET", path: "/", status: 101 }]);
});

it("delivers the answer of a server that refuses an upgrade", async () => {
  const flow = await relayed({
    secrets: [bearer],
    to: await https((_, response) => response.writeHead(403).end("no")),
  });
  const { statusCode, body } = await send(flow.secure(), {
    path: "/",
    headers: { Connection: "Upgrade", Upgrade: "echo" },
  });
  expect([statusCode, await body]).toEqual([403, "no"]);
});

it("ends the sandbox's connection when the server ends its own", async () => {
  const flow = await relayed({
    secrets: [bearer],
    to: await https((_, response) => response.writeHead(200, { connection: "close" }).end("last")),
  });
  const socket = flow.secure();
  expect(await (await get(socket, "/")).body).toBe("last");
  if (!socket.closed) await once(socket, "close");
  expect(await flow.done).toBeUndefined();
});

it("delivers all of an answer whose server ends the connection before the sandbox has read it", async () => {
  const content = Buffer.alloc(4 * 1024 * 1024, "sandpiper ");
  const flow = await relayed({
    secrets: [bearer],
    to: await https((_, response) => response.writeHead(200, { connection: "close" }).end(content)),
  });
  expect(await (await get(flow.secure(), "/")).body).toBe(content.toString());
});

it.each([
  ["a header that no client accepts", "HTTP/1.1 200 OK\r\nX: \u0001\r\nContent-Length: 2\r\n\r\nhi"],
  ["no HTTP at all", "\u0000\u0001\u0002 nonsense\r\n\r\n"],
  ["an answer that ends in its middle", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi"],
  ["a trailer that no client accepts", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: \u0001\r\n\r\n"],
])("ends the connection, and nothing else, when a server sends %s", async (_, answer) => {
  const server = createTlsServer({ SNICallback: (_name, done) => done(null, serverContext()) }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(answer, "latin1"));
  });
  const flow = await relayed({ secrets: [bearer], to: await listen(server) });
  const request = begin(flow.secure(), { path: "/" });
  request.on("response", (response) => response.on("error", () => {}).resume());
  request.end();
  await flow.done;
});

it("ends the connection when the server ends it before the second of two requests that were sent at once", async () => {
  const flow = await relayed({
    secrets: [bearer],
    to: await https((_, response) => response.writeHead(200, { connection: "close" }).end("one")),
  });
  const socket = flow.secure();
  const get = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
  socket.write(get + get);
  expect((await text(socket)).match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  await flow.done;
});

it("refuses TRACE, to which a server would answer with the secret", async () => {
  const flow = await relayed({ secrets: [bearer], to: await https((_, response) => response.end()) });
  expect((await send(flow.secure(), { method: "TRACE", path: "/" })).statusCode).toBe(405);
});

it("sends no secret without encryption, unless the secret allows it", async () => {
  const seen: (string | undefined)[] = [];
  const to = await listen(
    createHttpServer((request, response) => {
      seen.push(request.headers.authorization);
      response.end();
    }),
  );
  for (const allowsInsecure of [false, true]) {
    const flow = await relayed({ secrets: [bearer], to, port: 80, allowsInsecure });
    expect((await get(flow.guest, "/")).statusCode).toBe(200);
  }
  expect(seen).toEqual([undefined, `Bearer ${SECRET}`]);
});

it("passes bytes that are not TLS as they are", async () => {
  const { createServer: createTcpServer } = await import("node:net");
  const to = await listen(createTcpServer((socket) => void socket.pipe(socket)));
  const flow = await relayed({ secrets: [bearer], to });
  flow.guest.end("SSH-2.0-test\r\n");
  expect(await text(flow.guest)).toBe("SSH-2.0-test\r\n");
  expect(await flow.done).toBeUndefined();
});

it("refuses a client that offers only protocols that cannot carry a secret", async () => {
  const to = await listen(createTlsServer({ SNICallback: (_, done) => done(null, serverContext()) }));
  const flow = await relayed({ secrets: [bearer], to });
  flow.secure({ protocols: ["postgresql"] }).on("error", () => {});
  expect(await flow.done).toBe("not_http");
});

it("slows the server down to the speed of a sandbox that does not read", async () => {
  let written = 0;
  let isPaused = false;
  const flow = await relayed({
    secrets: [bearer],
    to: await https(async (_, response) => {
      const chunk = Buffer.alloc(64 * 1024);
      for (; written < 512; written++) {
        if (response.write(chunk)) continue;
        isPaused = true;
        await once(response, "drain");
      }
      response.end();
    }),
  });
  const request = begin(flow.secure(), { path: "/" });
  request.end();
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  await expect.poll(() => isPaused).toBe(true);
  const counts: number[] = [];
  await expect.poll(() => counts.push(written) > 1 && counts.at(-1) === counts.at(-2)).toBe(true);
  expect(written).toBeLessThan(512);
  let received = 0;
  for await (const chunk of answer) received += chunk.length;
  expect(received).toBe(512 * 64 * 1024);
});

async function https(listener: RequestListener): Promise<number> {
  return await listen(createServer({ SNICallback: (_, done) => done(null, serverContext()) }, listener));
}

const agents = new WeakMap<Duplex, Agent>();

/** Uses the connection for all requests. */
function agentOf(socket: Duplex): Agent {
  const agent = agents.get(socket) ?? new Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  agents.set(socket, agent);
  return agent;
}

interface Sent {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Record<string, string>;
}

function begin(socket: Duplex, { method = "GET", path, headers = {} }: Sent) {
  const request = httpRequest({
    agent: agentOf(socket),
    method,
    path,
    headers: { Host: HOST, Connection: "keep-alive", ...headers },
  });
  request.on("error", () => {});
  return request;
}

async function send(socket: Duplex, sent: Sent, content = "") {
  const request = begin(socket, sent);
  request.end(content);
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  const body = text(answer);
  // Some tests do not read it.
  body.catch(() => {});
  return { statusCode: answer.statusCode, headers: answer.headers, body };
}

function get(socket: Duplex, path: string, headers: Record<string, string> = {}) {
  return send(socket, { path, headers });
}
