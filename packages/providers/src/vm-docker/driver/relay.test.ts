import { once } from "node:events";
import { stat } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import type { Tunnel } from "@sandpiper/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { Relay } from "./relay.ts";

const directory = freshDirectory("relay");
const outside = join(directory, "outside.sock");
let inside: Server;
beforeEach(async () => {
  // Answers at the end of input, like an engine that loads an archive.
  inside = createServer({ allowHalfOpen: true }, (socket) => {
    let count = 0;
    socket.on("data", (bytes) => (count += bytes.length));
    socket.on("error", () => {});
    socket.on("end", () => socket.end(`heard ${count}`));
  }).listen(join(directory, "inside.sock"));
  await once(inside, "listening");
});
afterEach(() => void inside.close());

async function dial(): Promise<Tunnel> {
  const socket = connect({ path: join(directory, "inside.sock"), allowHalfOpen: true });
  await once(socket, "connect");
  const close = () => void socket.destroy();
  return {
    readable: socket.iterator({ destroyOnReturn: false }),
    write: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
    end: () => new Promise((resolve) => socket.end(() => resolve())),
    close,
    closed: once(socket, "close").then(() => {}),
    [Symbol.asyncDispose]: async () => close(),
  };
}

it("keeps the response direction open after the client has sent a large body and half-closed", async () => {
  await using _relay = await Relay.listen({ path: outside }, dial);
  expect((await stat(outside)).mode & 0o777).toBe(0o600);
  const socket = connect({ path: outside, allowHalfOpen: true });
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
  for (let piece = 0; piece < 64; piece++) socket.write(Buffer.alloc(65_536));
  socket.end();
  await once(socket, "end");
  expect(answer).toBe(`heard ${64 * 65_536}`);
});

it("closes a connection whose dial fails, and closes every connection on dispose", async () => {
  let isThere = false;
  const relay = await Relay.listen({ path: outside }, () =>
    isThere ? dial() : Promise.reject(new Error("nothing listens inside")),
  );
  const refused = connect(outside);
  await once(refused, "close");
  isThere = true;
  const open = connect(outside);
  await once(open, "connect");
  const closed = once(open, "close");
  await relay[Symbol.asyncDispose]();
  await closed;
});
