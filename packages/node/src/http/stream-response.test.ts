import { createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { describe, expect, it } from "vitest";
import type { Bindings, Call } from "./call.ts";
import { streamResponse } from "./stream-response.ts";

function callOf(request: Request, bindings: Bindings = {}): Call {
  const deps = { logger: { warn: () => {} } };
  const watchCredential = () => ({ [Symbol.dispose]: () => {} });
  const headers = { "x-request-id": "r" };
  return { operation: "readFile", request, bindings, requestId: "r", headers, deps, watchCredential } as never;
}

/** A source that counts the pieces it has produced. */
function counted(count: number, bytes = new Uint8Array(1024)) {
  const state = { given: 0, hasEnded: false };
  const source = async function* () {
    try {
      for (; state.given < count; state.given++) yield bytes;
    } finally {
      state.hasEnded = true;
    }
  };
  return { state, source };
}

describe("a streamed answer", () => {
  it("reads a piece from its source only when the reader needs it", async () => {
    const { state, source } = counted(100);
    const response = await streamResponse(callOf(new Request("http://node/")), source);
    const reader = response.body?.getReader();
    for (let each = 0; each < 3; each++) await reader?.read();
    expect(state.given).toBe(2);
    await reader?.cancel();
    expect(state.hasEnded).toBe(true);
  });

  it("ends its source when the caller leaves before reading", async () => {
    const left = new AbortController();
    const { state, source } = counted(100);
    await streamResponse(callOf(new Request("http://node/", { signal: left.signal })), source);
    left.abort();
    await expect.poll(() => state.hasEnded).toBe(true);
  });

  it("reads nothing from its source for a HEAD request", async () => {
    const { state, source } = counted(100);
    const head = new Request("http://node/", { method: "HEAD" });
    expect((await streamResponse(callOf(head), source, { lengthBytes: 5 })).headers.get("content-length")).toBe("5");
    expect(state.given).toBe(0);
  });

  it("fails when its source fails before the first piece, or ends before its length", async () => {
    const failing = () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("broken")) }) });
    await expect(streamResponse(callOf(new Request("http://node/")), failing)).rejects.toThrow("broken");
    const { source } = counted(2);
    const response = await streamResponse(callOf(new Request("http://node/")), source, { lengthBytes: 5000 });
    await expect(response.arrayBuffer()).rejects.toThrow();
  });

  it("pauses its source when the reader stops, on a real connection", async () => {
    const { state, source } = counted(10_000, new Uint8Array(64 * 1024));
    const listener = getRequestListener((request, env) => streamResponse(callOf(request, env as Bindings), source));
    const server = createServer(listener).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const asked = get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" }, (response) =>
      response.pause(),
    );
    asked.on("error", () => {});
    let before = -1;
    const isStill = () => {
      const still = state.given > 0 && state.given === before;
      before = state.given;
      return still;
    };
    await expect.poll(isStill, { interval: 100 }).toBe(true);
    // Only what fits into the buffers of both sockets, of 640 MB.
    expect(state.given).toBeLessThan(1000);
    asked.destroy();
    await expect.poll(() => state.hasEnded).toBe(true);
    await new Promise((resolve) => server.close(resolve));
  });
});
