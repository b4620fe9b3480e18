import { describe, expect, it } from "vitest";
import { FirstBytes, inspected, RefusedHost } from "./first-bytes.ts";
import { clientHello, helloMessage, records } from "./testing/client-hello.ts";

const inspect = (...chunks: readonly (string | Uint8Array)[]) => {
  const first = new FirstBytes((host) => host === "a.example");
  let passed = "";
  for (const chunk of chunks) {
    const result = first.push(typeof chunk === "string" ? Buffer.from(chunk, "latin1") : chunk);
    if (result.kind === "refused") return result.reason;
    if (result.kind === "waiting") continue;
    passed += result.bytes.toString("latin1");
    if (result.isDone) return passed;
  }
  return `so far: ${passed}`;
};
const request = (...lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;

describe("the first bytes of a connection", () => {
  it.each([
    request("GET / HTTP/1.1", "Host: a.example"),
    request("GET / HTTP/1.1", "User-Agent: x", "hOsT:A.Example.:8080", "X: y"),
    request("GET http://a.example/path HTTP/1.1", "Host: a.example"),
    request("GET / HTTP/1.0"),
    request("BREW /pot HTTP/1.1", "Host: a.example"),
    "GET / HTTP/1.1\nHost: a.example\n\n",
    `\r\n\r\n${request("GET / HTTP/1.1", "Host: a.example")}`,
    `${request("POST / HTTP/1.1", "Host: a.example", "Content-Length: 4")}body`,
    "EHLO somewhere\r\n",
    "SSH-2.0-OpenSSH\r\n",
    "PING\r\n",
    "*1\r\n$4\r\nPING\r\n",
    "\x00\x00\x00\x08\x04\xd2\x16\x2f",
    "\x16\x05 not TLS",
  ])("pass: %j", (text) => {
    expect(inspect(text)).toBe(text);
  });

  it("pass: TLS with the connection's name", () => {
    const hello = clientHello("a.example");
    expect(inspect(hello)).toBe(hello.toString("latin1"));
    expect(inspect(...[...hello].map((byte) => Buffer.from([byte])))).toBe(hello.toString("latin1"));
  });

  it.each([
    ["another name", clientHello("b.example")],
    ["a sub-domain", clientHello("x.a.example")],
    ["an address", clientHello("127.0.0.1")],
    ["a name with a null byte", clientHello("a.example\0.b.example")],
    ["no name", records(helloMessage([]))],
    ["no valid hello", Buffer.from([0x16, 3, 1, 0, 4, 2, 0, 0, 0])],
  ])("are refused: TLS with %s", (_, hello) => {
    expect(inspect(hello)).toBe("tls_name_mismatch");
  });

  it.each([
    request("GET / HTTP/1.1", "Host: b.example"),
    request("GET / HTTP/1.1", "Host: a.example", "Host: b.example"),
    request("GET / HTTP/1.1", "Host: b.example", "Host: a.example"),
    request("GET / HTTP/1.1", "Host: a.example@b.example"),
    request("GET / HTTP/1.1", "Host:"),
    request("GET / HTTP/1.1", "Host: a.example b.example"),
    request("GET http://b.example/ HTTP/1.1", "Host: a.example"),
    request("GET http://a.example@b.example/ HTTP/1.1", "Host: a.example"),
    request("CONNECT b.example:443 HTTP/1.1", "Host: b.example:443"),
    request("GET / HTTP/1.1", "Host : b.example"),
    request("GET / HTTP/1.1", " Host: b.example"),
    request("GET / HTTP/1.1", "X: y", "\tHost: b.example", "Host: a.example"),
    request("GET / HTTP/1.1", "Host:", " b.example"),
    request("GET / HTTP/1.1", "X: y\rHost: b.example", "Host: a.example"),
    request("GET  / HTTP/1.1", "Host: b.example"),
    request("GET\t/\tHTTP/1.1", "Host: b.example"),
    request("get / http/1.1", "Host: b.example"),
    "GET / HTTP/1.1\nHost: b.example\n\n",
    `\r\n${request("GET / HTTP/1.1", "Host: b.example")}`,
    request("FOO / HTTP/1.1", "Host: b.example"),
    `GET / HTTP/1.1\r\nX: ${"y".repeat(70_000)}`,
  ])("are refused: %j", (text) => {
    expect(inspect(text)).toBe("http_host_mismatch");
    const bytes = [...text.slice(0, 300)];
    if (text.length < 300) expect(inspect(...bytes)).toBe("http_host_mismatch");
  });

  it("of a line that may become a request are sent on before its end, and its headers are held", () => {
    const first = new FirstBytes((host) => host === "a.example");
    const push = (text: string) => {
      const result = first.push(Buffer.from(text));
      return result.kind === "passed" ? result.bytes.toString() : result.kind;
    };
    expect(push("ping")).toBe("ping");
    expect(push(" pong HTTP/1.1\r\n")).toBe("waiting");
    expect(push("Host: b.example\r\n")).toBe("waiting");
    expect(push("\r\n")).toBe("refused");
  });

  it("are not held for a client that sends a lot without a line", () => {
    const text = "x".repeat(600_000);
    expect(inspect(text)).toBe(text);
  });

  it("that are held when the client ends are refused", async () => {
    const read = async (text: string | Buffer) => {
      let passed = "";
      async function* source() {
        yield Buffer.from(text);
      }
      try {
        for await (const bytes of inspected(source(), () => false)) passed += Buffer.from(bytes).toString("latin1");
        return passed;
      } catch (thrown) {
        return thrown instanceof RefusedHost ? thrown.reason : thrown;
      }
    };
    expect(await read("GET / HTTP/1.1\r\nHost: b.example\r\n")).toBe("http_host_mismatch");
    expect(await read(clientHello("b.example").subarray(0, 50))).toBe("tls_name_mismatch");
    expect(await read("just text")).toBe("just text");
    expect(await read("")).toBe("");
  });
});
