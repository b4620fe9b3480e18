import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { connect } from "node:tls";
import { describe, expect, it } from "vitest";
import { readClientHello } from "./client-hello.ts";
import { clientHello, decoy, extension, helloMessage, records, serverName } from "./testing/client-hello.ts";

describe("readClientHello", () => {
  it("finds the server name and the protocols in the hello of a real client", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, servername: "real.example", ALPNProtocols: ["h2", "http/1.1"] });
    client.on("error", () => {});
    const [socket] = await once(server, "connection");
    const [bytes] = await once(socket, "data");
    client.destroy();
    socket.destroy();
    server.close();
    expect(readClientHello(bytes)).toEqual({
      kind: "hello",
      serverName: "real.example",
      protocols: ["h2", "http/1.1"],
    });
  });

  it.each([1, 2, 3, 5, 7, 64, 16_384])("finds it in records of %d bytes, with decoys before it", (maxBytes) => {
    const bytes = records(helloMessage([decoy, serverName("a.example"), decoy]), maxBytes);
    expect(readClientHello(bytes)).toEqual({ kind: "hello", serverName: "a.example", protocols: [] });
  });

  it("needs more until the hello is complete, and never more than there is", () => {
    for (const maxBytes of [1, 9, 16_384]) {
      const bytes = records(helloMessage([serverName("a.example")]), maxBytes);
      for (let length = 0; length < bytes.length; length++) {
        const reading = readClientHello(bytes.subarray(0, length));
        if (length === 0) expect(reading).toMatchObject({ kind: "incomplete" });
        expect(reading.kind).toBe("incomplete");
        const need = reading.kind === "incomplete" ? reading.need : 0;
        expect(need).toBeGreaterThan(length);
        expect(need).toBeLessThanOrEqual(bytes.length);
      }
    }
  });

  it("reads a hello without a server name, and one without extensions", () => {
    expect(readClientHello(records(helloMessage([decoy])))).toEqual({ kind: "hello", serverName: null, protocols: [] });
    expect(readClientHello(records(helloMessage(undefined)))).toEqual({
      kind: "hello",
      serverName: null,
      protocols: [],
    });
  });

  it("ignores what follows the hello", () => {
    const bytes = Buffer.concat([clientHello("a.example"), Buffer.from("early data")]);
    expect(readClientHello(bytes)).toEqual({ kind: "hello", serverName: "a.example", protocols: [] });
  });

  it.each([
    ["text", Buffer.from("GET / HTTP/1.1")],
    ["SSH", Buffer.from("SSH-2.0-x\r\n")],
    ["PostgreSQL", Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])],
    ["another version", Buffer.from([0x16, 5, 1, 0, 1])],
  ])("takes %s for something else", (_, bytes) => {
    expect(readClientHello(bytes)).toEqual({ kind: "other" });
  });

  const twoNames = extension(0, Buffer.from([0, 10, 0, 0, 2, 97, 97, 0, 0, 2, 98, 98]));
  it.each([
    ["two server name extensions", records(helloMessage([serverName("a.example"), serverName("b.example")]))],
    ["two names in one extension", records(helloMessage([twoNames]))],
    ["a protocol beyond its list", records(helloMessage([extension(16, Buffer.from([0, 2, 9, 104]))]))],
    ["a name beyond the extension", records(helloMessage([extension(0, Buffer.from([0, 9, 0, 0, 9, 97]))]))],
    ["an extension beyond the hello", records(helloMessage([Buffer.from([0, 10, 255, 255])]))],
    ["another handshake message", Buffer.from([0x16, 3, 1, 0, 4, 2, 0, 0, 0])],
    ["an empty record", Buffer.from([0x16, 3, 1, 0, 0])],
    ["a record that is too long", Buffer.from([0x16, 3, 1, 0xff, 0xff])],
    ["a hello that is too long", Buffer.from([0x16, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff])],
    [
      "an alert in the middle",
      Buffer.concat([records(helloMessage([decoy]), 9).subarray(0, 14), Buffer.from([0x15, 3, 1, 0, 2, 1, 0])]),
    ],
  ])("refuses %s", (_, bytes) => {
    expect(readClientHello(bytes)).toEqual({ kind: "malformed" });
  });

  it("survives every change of a single byte", () => {
    const bytes = clientHello("a.example");
    for (let at = 0; at < bytes.length; at++) {
      for (const value of [0, 1, 0x7f, 0xff]) {
        const changed = Buffer.from(bytes);
        changed[at] = value;
        expect(["incomplete", "other", "malformed", "hello"]).toContain(readClientHello(changed).kind);
      }
    }
  });
});
