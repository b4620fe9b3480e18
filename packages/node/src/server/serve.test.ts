import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { FakeClock } from "@sandpiper/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { type ServeOptions, type Serving, serve } from "./serve.ts";

const serving: Serving[] = [];
afterEach(async () => {
  await Promise.all(serving.splice(0).map((one) => one.close({ graceMs: 0 })));
});

async function start(fetch: ServeOptions["app"]["fetch"], options: Partial<ServeOptions> = {}): Promise<Serving> {
  const one = await serve({ app: { fetch }, host: "127.0.0.1", port: 0, ...options });
  serving.push(one);
  return one;
}

const ok = () => new Response("ok");

/** Sends text over a raw connection; returns the answer when the connection is closed. */
async function talk(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  let answer = "";
  socket.on("data", (piece) => (answer += piece)).on("error", () => {});
  socket.write(text);
  await once(socket, "close");
  return answer;
}

describe("serve", () => {
  it("listens on a free port and returns its URL", async () => {
    const { url } = await start(ok);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(url)).text()).toBe("ok");
  });

  it("returns a usable URL when it listens on all addresses, and on IPv6", async () => {
    const everywhere = await start(ok, { host: "0.0.0.0" });
    expect(everywhere.url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    const six = await start(ok, { host: "::1" });
    expect(await (await fetch(six.url)).text()).toBe("ok");
  });

  it("fails when the port is in use, and says how to choose another", async () => {
    const { url } = await start(ok);
    const port = Number(new URL(url).port);
    await expect(start(ok, { port })).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "port_in_use",
      message: expect.stringContaining(String(port)),
      hint: expect.stringContaining("--port"),
    });
  });

  it("fails when the machine does not have the address", async () => {
    await expect(start(ok, { host: "192.0.2.1" })).rejects.toMatchObject({ reason: "no_such_host" });
  });

  it("fails when it cannot read the TLS files, and names them", async () => {
    const tls = { certFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem" };
    await expect(start(ok, { tls })).rejects.toMatchObject({
      reason: "bad_tls_files",
      message: expect.stringContaining("/nowhere/cert.pem"),
    });
  });

  it("closes a connection that sends nothing, or incomplete headers", async () => {
    const { url } = await start(ok, { headersTimeoutMs: 100 });
    expect(await talk(url, "")).toContain("408");
    expect(await talk(url, "GET / HTTP/1.1\r\nHost: x\r\n")).toContain('"reason":"request_timeout"');
  });

  it("does not wait for the rest of a body that the app does not read", async () => {
    const { url } = await start(() => new Response("no", { status: 401 }));
    const answer = await talk(url, `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nbegin`);
    expect(answer).toMatch(/^HTTP\/1\.1 401 /);
  });

  it("answers invalid HTTP, and headers that are too large, with the usual error body", async () => {
    const { url } = await start(ok);
    const malformed = await talk(url, "what is this\r\n\r\n");
    expect(malformed).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(malformed.split("\r\n\r\n")[1] ?? "")).toMatchObject({
      code: "invalid_argument",
      reason: "malformed_request",
      requestId: expect.any(String),
    });
    const large = await talk(url, `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(20_000)}\r\n\r\n`);
    expect(large).toMatch(/^HTTP\/1\.1 431 /);
  });

  it.each([
    ["without a Host header", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["with an unknown expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: much\r\n\r\n"],
  ])("answers a request %s with the usual error body", async (_, text) => {
    const { url } = await start(ok);
    const answer = await talk(url, text);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ reason: "malformed_request" });
  });

  it("lets callers handle upgrades", async () => {
    const { url } = await start(ok, {
      onUpgradeServer: (server) =>
        server.on("upgrade", (_request, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\n\r\nhello")),
    });
    expect(await talk(url, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")).toContain(
      "hello",
    );
  });
});

describe("a server that closes", () => {
  it("drops idle connections immediately", async () => {
    const one = await start(ok);
    const agent = new Agent({ keepAlive: true });
    const [response] = await once(request(one.url, { agent }).end(), "response");
    response.resume();
    await once(response, "end");
    await one.close({ graceMs: 600_000 });
    agent.destroy();
  });

  it("lets running requests finish, accepts no new ones, and closes their connections", async () => {
    const answer = Promise.withResolvers<Response>();
    const asked = Promise.withResolvers<void>();
    const one = await start(() => {
      asked.resolve();
      return answer.promise;
    });
    const agent = new Agent({ keepAlive: true });
    const responded = once(request(one.url, { agent }).end(), "response");
    await asked.promise;
    const closed = one.close({ graceMs: 600_000 });
    await expect(fetch(one.url)).rejects.toThrow();
    answer.resolve(new Response("done"));
    const [response] = await responded;
    expect(String(await response.toArray())).toBe("done");
    await closed;
    agent.destroy();
  });

  it("closes what is still open after the grace period, upgraded connections too", async () => {
    const clock = new FakeClock();
    const asked = Promise.withResolvers<void>();
    const upgraded = Promise.withResolvers<void>();
    const one = await start(
      () => {
        asked.resolve();
        return new Promise<Response>(() => {});
      },
      { clock, onUpgradeServer: (server) => server.on("upgrade", () => upgraded.resolve()) },
    );
    const hanging = talk(one.url, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const socket = talk(one.url, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    await Promise.all([asked.promise, upgraded.promise]);
    const closed = one.close({ graceMs: 5000 });
    await clock.advance(4999);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    await Promise.all([closed, hanging, socket]);
  });
});
