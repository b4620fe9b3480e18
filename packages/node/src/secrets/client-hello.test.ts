import { once } from "node:events";
import { duplexPair } from "node:stream";
import { connect } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { readClientHello } from "./client-hello.ts";

async function helloOf(options: { readonly servername?: string; readonly ALPNProtocols?: string[] }): Promise<Buffer> {
  const [client, server] = duplexPair();
  const socket = connect({ socket: client, ...options });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const [bytes] = (await once(server, "data")) as [Buffer];
  return bytes;
}

it("reads the server name and the protocols of a real client", async () => {
  const hello = await helloOf({ servername: "API.example.com", ALPNProtocols: ["h2", "http/1.1"] });
  expect(readClientHello(hello)).toEqual({ serverName: "api.example.com", protocols: ["h2", "http/1.1"] });
});

it("reads a hello without server name and protocols", async () => {
  expect(readClientHello(await helloOf({}))).toEqual({ serverName: undefined, protocols: [] });
});

it("waits for every missing byte, also of a hello that is split over many records", async () => {
  const hello = await helloOf({ servername: "api.example.com" });
  const message = hello.subarray(5);
  const records = Array.from({ length: Math.ceil(message.length / 50) }, (_, index) => {
    const part = message.subarray(50 * index, 50 * (index + 1));
    return Buffer.concat([hello.subarray(0, 3), Buffer.from([0, part.length]), part]);
  });
  const split = Buffer.concat(records);
  for (let length = 0; length < split.length; length++) expect(readClientHello(split.subarray(0, length))).toBe("more");
  expect(readClientHello(split)).toMatchObject({ serverName: "api.example.com" });
});

it("takes other protocols, and a hello with wrong lengths, for what they are", async () => {
  expect(readClientHello(Buffer.from("GET / HTTP/1.1\r\n"))).toBe("other");
  expect(readClientHello(Buffer.from("SSH-2.0-x\r\n"))).toBe("other");
  const hello = await helloOf({ servername: "api.example.com" });
  const session = 5 + 4 + 34;
  const broken = Buffer.from(hello);
  broken[session] = 0xff;
  expect(["other", "object"]).toContain(
    typeof readClientHello(broken) === "object" ? "object" : readClientHello(broken),
  );
});

it("survives any change of a byte", async () => {
  const hello = await helloOf({ servername: "api.example.com", ALPNProtocols: ["h2"] });
  for (let at = 0; at < hello.length; at++) {
    for (const value of [0x00, 0x7f, 0xff]) {
      const changed = Buffer.from(hello);
      changed[at] = value;
      expect(() => readClientHello(changed)).not.toThrow();
    }
  }
});
