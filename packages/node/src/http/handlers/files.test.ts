import { randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { fileEntrySchema, fileEventSchema, fileListSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type RequestOptions, type TestNode } from "../testing/test-node.ts";

let node: TestNode;
let at: string;
let id: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  ({ id } = await node.create());
  at = `/v1/sandboxes/${id}/files`;
});
afterAll(() => node[Symbol.asyncDispose]());

const ask = (method: string, path: string, options?: RequestOptions) => node.request(method, at + path, options);
const put = (path: string, bytes: string) => ask("PUT", `?path=${path}`, { bytes });
const text = async (path: string) => (await ask("GET", `?path=${path}`)).text();

describe("files", () => {
  it("are written, described, listed, moved and removed", async () => {
    expect(await (await ask("PUT", "?path=/tmp/d/a&mode=600", { bytes: "hello" })).json()).toEqual({ sizeBytes: 5 });
    const stat = await (await ask("GET", "/stat?path=/tmp/d/a")).json();
    expect(fileEntrySchema.parse(stat)).toMatchObject({ path: "/tmp/d/a", kind: "file", sizeBytes: 5, mode: 0o600 });
    expect(await (await ask("POST", "/mkdir", { json: { path: "/tmp/d/sub" } })).json()).toEqual({ created: true });
    const list = fileListSchema.parse(await (await ask("GET", "/list?path=/tmp/d&depth=0")).json());
    expect(list.items.map(({ path, kind }) => [path, kind])).toEqual([
      ["a", "file"],
      ["sub", "directory"],
    ]);
    expect((await ask("POST", "/chmod", { json: { path: "/tmp/d/a", mode: 0o644 } })).status).toBe(204);
    expect((await ask("POST", "/move", { json: { from: "/tmp/d/a", to: "/tmp/d/b" } })).status).toBe(204);
    expect(await text("/tmp/d/b")).toBe("hello");
    expect(await errorOf(await ask("DELETE", "?path=/tmp/d"))).toMatchObject({
      status: 412,
      reason: "directory_not_empty",
    });
    expect((await ask("DELETE", "?path=/tmp/d&recursive=true")).status).toBe(204);
    expect(await errorOf(await ask("GET", "?path=/tmp/d/b"))).toMatchObject({ status: 404, reason: "no_such_file" });
    expect((await ask("DELETE", "?path=/tmp/d&missingOk=true")).status).toBe(204);
  });

  it("stay inside the sandbox for any path", async () => {
    expect(await errorOf(await ask("GET", "?path=../../../../../../etc/passwd"))).toMatchObject({ status: 404 });
    await put("../../../../../tmp/up", "inside");
    expect(await text("/tmp/up")).toBe("inside");
  });

  it("are read in ranges", async () => {
    await put("/tmp/digits", "0123456789");
    const range = async (query: string, header?: string) => {
      const headers: Record<string, string> = header === undefined ? {} : { range: header };
      const response = await ask("GET", `?path=/tmp/digits${query}`, { headers });
      return [response.status, await response.text(), response.headers.get("content-range")];
    };
    expect(await range("")).toEqual([200, "0123456789", null]);
    expect(await range("", "bytes=2-4")).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await range("", "bytes=7-")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await range("", "bytes=-3")).toEqual([206, "789", "bytes 7-9/10"]);
    expect(await range("", "bytes=8-100")).toEqual([206, "89", "bytes 8-9/10"]);
    expect(await range("&offset=2&lengthBytes=3")).toEqual([206, "234", "bytes 2-4/10"]);
    expect(await range("", "bytes=0-1,4-5")).toEqual([200, "0123456789", null]);
    expect(await range("", "lines=1-2")).toEqual([200, "0123456789", null]);
    for (const [query, header] of [["", "bytes=10-"], ["", "bytes=-0"], ["&offset=10"], ["&lengthBytes=0"]] as const) {
      const [status, body, contentRange] = await range(query, header);
      expect([status, contentRange]).toEqual([416, "bytes */10"]);
      expect(JSON.parse(String(body)).reason).toBe("range_not_satisfiable");
    }
    expect((await range("&offset=1", "bytes=0-1"))[0]).toBe(400);
  });

  it("have a Content-Length, also for HEAD", async () => {
    await put("/tmp/sized", "12345");
    await put("/tmp/empty", "");
    await using server = await node.listen();
    const head = await server.fetch("HEAD", `${at}?path=/tmp/sized`);
    expect([head.status, head.headers.get("content-length")]).toEqual([200, "5"]);
    const empty = await server.fetch("GET", `${at}?path=/tmp/empty`);
    expect([empty.status, await empty.text()]).toEqual([200, ""]);
  });

  it("are transferred unchanged over a real connection", async () => {
    await using server = await node.listen();
    const content = randomBytes(5 * 1024 * 1024 + 17);
    const written = await server.fetch("PUT", `${at}?path=/tmp/big`, { bytes: content });
    expect(await written.json()).toEqual({ sizeBytes: content.length });
    const pieces = async function* () {
      for (let from = 0; from < content.length; from += 100_000) yield content.subarray(from, from + 100_000);
    };
    await server.fetch("PUT", `${at}?path=/tmp/chunked`, { bytes: ReadableStream.from(pieces()) as never });
    for (const name of ["big", "chunked"]) {
      const read = await server.fetch("GET", `${at}?path=/tmp/${name}`);
      expect(content.equals(new Uint8Array(await read.arrayBuffer()))).toBe(true);
    }
  });

  it("are not changed by an upload that is interrupted", async () => {
    await put("/tmp/kept", "as before");
    await using server = await node.listen();
    const live = node.access.open(node.authenticator.authenticate(node.owner), id, { readOnly: false });
    const listed = () => Array.fromAsync(live.files.list("/tmp"));
    const atFirst = await listed();
    for (const headers of [{ "content-length": "1000000" }, { "transfer-encoding": "chunked" }]) {
      const upload = httpRequest(`${server.url}${at}?path=/tmp/kept`, {
        method: "PUT",
        headers: { authorization: `Bearer ${node.owner}`, ...headers },
      });
      upload.on("error", () => {});
      const before = node.logged.length;
      upload.write("x".repeat(100_000), () => setImmediate(() => upload.destroy()));
      await new Promise((resolve) => upload.once("close", resolve));
      await expect.poll(() => node.logged.slice(before)).toMatchObject([{ fields: { status: 499 } }]);
    }
    expect(await text("/tmp/kept")).toBe("as before");
    expect(await listed()).toEqual(atFirst);
  });

  it("close the connection when reading them fails", async () => {
    const failing = await createTestNode({ provider: new MockProvider() });
    await using _ = failing;
    const sandbox = await failing.create();
    await using server = await failing.listen();
    const path = `/v1/sandboxes/${sandbox.id}/files?path=/tmp/big`;
    await server.fetch("PUT", path, { bytes: randomBytes(64 * 1024 * 1024) });
    const response = await server.fetch("GET", path);
    const reader = response.body?.getReader();
    await reader?.read();
    await failing.request("DELETE", `/v1/sandboxes/${sandbox.id}`);
    const drain = async () => {
      while (!(await reader?.read())?.done);
    };
    await expect(drain()).rejects.toThrow();
    await expect.poll(() => failing.logged.map(({ message }) => message)).toContain("aborted an answer");
  });

  it("are watched until the caller leaves", async () => {
    await using server = await node.listen();
    expect(await errorOf(await ask("GET", "/watch?path=/nowhere"))).toMatchObject({ status: 404 });
    const left = new AbortController();
    const response = await server.fetch("GET", `${at}/watch?path=/tmp&recursive=true`, { signal: left.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    await put("/tmp/watched", "x");
    let seen = "";
    for await (const bytes of response.body ?? []) {
      seen += Buffer.from(bytes).toString();
      if (seen.includes("watched")) break;
    }
    const data = /^data: (.*)$/m.exec(seen)?.[1] ?? "";
    expect(fileEventSchema.parse(JSON.parse(data))).toEqual({ kind: "create", path: "watched", to: null });
    left.abort();
  });
});
