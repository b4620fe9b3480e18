import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { VsockChannel } from "./vsock-channel.ts";
import { connectVsock, untilConnected } from "./vsock-connection.ts";

const { signal } = new AbortController();
const path = join(freshDirectory("vsock"), "v.sock");
let server: Server;
/** The server's sockets, in the order of their connections. */
let accepted: Socket[];
/** What the server sends to each new connection. */
let greeting: string;
beforeEach(async () => {
  accepted = [];
  greeting = "OK 1073741824\n";
  server = createServer((socket) => {
    accepted.push(socket.on("error", () => {}));
    socket.once("data", () => socket.write(greeting));
  }).listen({ path });
  await once(server, "listening");
});
afterEach(() => {
  for (const socket of accepted) socket.destroy();
  server.close();
});

function listen(channel: VsockChannel) {
  const heard = { text: "", closed: [] as (string | undefined)[] };
  channel.open({
    data: (chunk) => {
      heard.text += Buffer.from(chunk).toString();
    },
    closed: (cause) => void heard.closed.push(cause?.message),
  });
  return heard;
}

describe("connectVsock", () => {
  it("connects with any port number in the answer, and keeps the bytes that follow it", async () => {
    greeting = "OK 7\nearly";
    const heard = listen(new VsockChannel(await connectVsock(path, 52, signal)));
    await expect.poll(() => heard.text).toBe("early");
  });

  it("refuses a wrong answer, and gives up on silence and on a closed connection", async () => {
    greeting = "HTTP/1.1 400\n";
    await expect(connectVsock(path, 52, signal)).rejects.toThrow(/Firecracker answered/);
    greeting = "x".repeat(100);
    await expect(connectVsock(path, 52, signal)).rejects.toThrow(/did not answer with OK/);
    greeting = "";
    const patience = new AbortController();
    const asked = connectVsock(path, 52, patience.signal);
    patience.abort(new Error("aborted"));
    await expect(asked).rejects.toThrow("aborted");
    server.close();
    await expect(connectVsock(path, 52, signal)).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("untilConnected", () => {
  it("tries again when Firecracker does not answer, as before the guest's driver is loaded", async () => {
    greeting = "";
    const connected = untilConnected(path, signal);
    await expect.poll(() => accepted.length).toBe(1);
    greeting = "OK 7\n";
    (await connected).destroy();
    expect(accepted).toHaveLength(2);
  });
});

describe("VsockChannel", () => {
  it("continues over another connection, unnoticed by its reader", async () => {
    const channel = new VsockChannel(await connectVsock(path, 52, signal));
    const heard = listen(channel);
    accepted[0]?.write("one ");
    await expect.poll(() => heard.text).toBe("one ");
    channel.beginReplacing();
    accepted[0]?.destroy();
    channel.replace(await connectVsock(path, 52, signal));
    const written = once(accepted[1] as Socket, "data");
    channel.write([Buffer.from("question")]);
    expect(String(await written)).toBe("question");
    accepted[1]?.write("two");
    await expect.poll(() => heard.text).toBe("one two");
    expect(heard.closed).toEqual([]);
  });

  it("ends with its connection, unless the connection is being replaced", async () => {
    const lost = new VsockChannel(await connectVsock(path, 52, signal));
    const heard = listen(lost);
    accepted[0]?.destroy();
    await expect.poll(() => heard.closed).toEqual(["the connection has ended"]);
    const given = new VsockChannel(await connectVsock(path, 52, signal));
    const other = listen(given);
    given.beginReplacing();
    given.giveUp(new Error("it does not answer"));
    expect(other.closed).toEqual(["it does not answer"]);
  });
});
