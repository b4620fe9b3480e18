import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer } from "node:https";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { expect, it, onTestFinished } from "vitest";
import type { UsableSecret } from "./inject.ts";
import { HOST, listen, type Relayed, relayed, serverContext } from "./testing/relayed-world.ts";

const SECRET = "sk-real-0123456789";
const bearer: UsableSecret = {
  placeholder: "sandpiper-secret-abc",
  value: SECRET,
  inject: { header: "Authorization", format: "Bearer {}" },
};

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => unknown;

it("sets the header of each of many concurrent streams", async () => {
  const seen = new Set<unknown>();
  const flow = await relayedTo((stream, headers) => {
    seen.add(headers.authorization);
    stream.respond({ ":status": 200, "x-path": headers[":path"] });
    stream.end("ok");
  });
  const session = open(flow);
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) => fetched(session, { ":path": `/${index}` })),
  );
  expect(answers.map(({ headers }) => headers["x-path"])).toEqual(answers.map((_, index) => `/${index}`));
  expect([...seen]).toEqual([`Bearer ${SECRET}`]);
  expect(flow.requests).toHaveLength(50);
  expect(flow.requests[7]).toEqual({ method: "GET", path: "/7", status: 200 });
  session.close();
  expect(await flow.done).toBeUndefined();
});

it("refuses a stream that names another host, in either place", async () => {
  let count = 0;
  const flow = await relayedTo((stream) => {
    count++;
    stream.respond({ ":status": 200 });
    stream.end();
  });
  const session = open(flow);
  for (const headers of [{ ":authority": "other.example.com" }, { host: "other.example.com" }]) {
    expect((await fetched(session, headers)).headers[":status"]).toBe(421);
  }
  expect(count).toBe(0);
});

it("carries bodies and trailers in both directions", async () => {
  const flow = await relayedTo(async (stream) => {
    let trailers: IncomingHttpHeaders = {};
    stream.on("trailers", (received) => (trailers = received));
    const body = await text(stream);
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-got": String(trailers["x-sent"]) }));
    stream.end(`echo ${body}`);
  });
  const stream = open(flow).request({ ":method": "POST" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-sent": "yes" }));
  const trailers = once(stream, "trailers");
  stream.end("body");
  expect(await text(stream)).toBe("echo body");
  expect((await trailers)[0]).toMatchObject({ "grpc-status": "0", "x-got": "yes" });
});

it("moves 8 MiB unchanged in each direction", async () => {
  const flow = await relayedTo((stream) => {
    stream.respond({ ":status": 200 });
    stream.pipe(stream);
  });
  const content = Buffer.alloc(8 * 1024 * 1024, "sandpiper ");
  const stream = open(flow).request({ ":method": "POST" });
  Readable.from(chunksOf(content)).pipe(stream);
  expect((await buffer(stream)).equals(content)).toBe(true);
});

it("passes on that either side cancels a stream", async () => {
  const canceled = Promise.withResolvers<number>();
  const flow = await relayedTo((stream, headers) => {
    stream.on("error", () => {});
    if (headers[":path"] === "/server") return stream.close(7);
    stream.respond({ ":status": 200 });
    stream.on("close", () => canceled.resolve(stream.rstCode ?? 0));
  });
  const session = open(flow);
  const refused = session.request({ ":path": "/server" });
  refused.on("error", () => {});
  await new Promise((resolve) => refused.once("close", resolve));
  expect(refused.rstCode).toBe(7);
  const left = session.request({ ":path": "/client" });
  await once(left, "response");
  left.close(8);
  expect(await canceled.promise).toBe(8);
});

it("ends when the sandbox closes its connection without a word", async () => {
  const flow = await relayedTo((stream) => {
    stream.respond({ ":status": 200 });
    stream.end();
  });
  await fetched(open(flow), {});
  flow.guest.end();
  expect(await flow.done).toBeUndefined();
});

it("ends the sandbox's connection when the server ends its own", async () => {
  const sessions: ServerHttp2Session[] = [];
  const flow = await relayedTo((stream) => {
    sessions.push(stream.session as ServerHttp2Session);
    stream.respond({ ":status": 200 });
    stream.end();
  });
  const session = open(flow);
  await fetched(session, {});
  const closed = once(session, "close");
  sessions[0]?.destroy();
  await closed;
  expect(await flow.done).toBeUndefined();
});

it("speaks HTTP/1.1 with a server that offers nothing else", async () => {
  const server = createServer({ SNICallback: (_, done) => done(null, serverContext()) }, (_, response) =>
    response.end(),
  );
  const flow = await relayed({ secrets: [bearer], to: await listen(server) });
  const socket = flow.secure({ protocols: ["h2", "http/1.1"] });
  await once(socket, "secureConnect");
  expect(socket.alpnProtocol).toBe("http/1.1");
});

it("answers 502 to a client that speaks only HTTP/2 when the server cannot be reached", async () => {
  const flow = await relayed({ secrets: [bearer], to: 1 });
  const { headers, body } = await fetched(open(flow), {});
  expect(headers[":status"]).toBe(502);
  expect(body).toBe(`sandpiper: the node cannot connect to ${HOST}\n`);
});

function* chunksOf(content: Buffer): Generator<Buffer> {
  const size = 256 * 1024;
  for (let at = 0; at < content.length; at += size) yield content.subarray(at, at + size);
}

async function relayedTo(answer: Answer): Promise<Relayed> {
  const server = createSecureServer({ SNICallback: (_, done) => done(null, serverContext()) });
  server.on("stream", (stream: ServerHttp2Stream, headers) => void answer(stream, headers));
  return await relayed({ secrets: [bearer], to: await listen(server) });
}

function open(flow: Relayed): ClientHttp2Session {
  const session = connect(`https://${HOST}`, { createConnection: () => flow.secure({ protocols: ["h2"] }) });
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return session;
}

async function fetched(session: ClientHttp2Session, headers: OutgoingHttpHeaders) {
  const stream = session.request(headers);
  const [answered] = (await once(stream, "response")) as [IncomingHttpHeaders];
  return { headers: answered, body: await text(stream) };
}
