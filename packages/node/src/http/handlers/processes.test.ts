import { processExitSchema, processListSchema, processResourceSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type RequestOptions, type TestNode } from "../testing/test-node.ts";

let node: TestNode;
let at: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  at = `/v1/sandboxes/${(await node.create()).id}/processes`;
});
afterAll(() => node[Symbol.asyncDispose]());

async function ask(method: string, path: string, options?: RequestOptions) {
  const response = await node.request(method, at + path, options);
  const text = await response.text();
  if (response.status >= 400) throw new Error(text);
  return text === "" ? undefined : JSON.parse(text);
}

describe("processes", () => {
  it("get input as it arrives, before the request has ended", async () => {
    const { id } = await ask("POST", "", { json: { argv: ["cat"], stdin: true } });
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const written = ask("POST", `/${id}/stdin?close=true`, { bytes: body.readable });
    await writer.write(new TextEncoder().encode("one "));
    await expect.poll(async () => (await node.request("GET", `${at}/${id}/output`)).text()).toBe("one ");
    await writer.write(new TextEncoder().encode("two"));
    await writer.close();
    expect(await written).toEqual({ offset: 7 });
    expect(processExitSchema.parse(await ask("GET", `/${id}/wait`))).toMatchObject({ exitCode: 0 });
    await ask("DELETE", `/${id}`);
  });

  it("are started, get input, are read, waited for and deleted", async () => {
    const started = processResourceSchema.parse(await ask("POST", "", { json: { argv: ["cat"], stdin: true } }));
    expect(started).toMatchObject({ isRunning: true, exitCode: null, argv: ["cat"] });
    const { id } = started;
    expect(await ask("POST", `/${id}/stdin`, { bytes: "one " })).toEqual({ offset: 4 });
    expect(await ask("POST", `/${id}/stdin?offset=2`, { bytes: "e two" })).toEqual({ offset: 7 });
    expect(await ask("POST", `/${id}/stdin?close=true`)).toEqual({ offset: 7 });
    expect(processExitSchema.parse(await ask("GET", `/${id}/wait`))).toMatchObject({ exitCode: 0 });
    const output = await node.request("GET", `${at}/${id}/output?offset=4`);
    expect(await output.text()).toBe("two");
    expect(Object.fromEntries(output.headers)).toMatchObject({
      "content-length": "3",
      "sandpiper-start-offset": "4",
      "sandpiper-end-offset": "7",
    });
    expect(processResourceSchema.parse(await ask("GET", `/${id}`))).toMatchObject({ isRunning: false, exitCode: 0 });
    expect(processListSchema.parse(await ask("GET", "")).items.map((each) => each.id)).toEqual([id]);
    await ask("DELETE", `/${id}`);
    expect(await errorOf(await node.request("GET", `${at}/${id}`))).toMatchObject({ reason: "no_such_process" });
  });

  it("are started once for one id", async () => {
    const json = { command: "sleep 600", process: "once" };
    const [first, second] = [await ask("POST", "", { json }), await ask("POST", "", { json })];
    expect(second.pid).toBe(first.pid);
    await ask("DELETE", "/once");
  });

  it("get signals, whose names may lack SIG", async () => {
    for (const signal of ["TERM", "SIGKILL"]) {
      const { id } = await ask("POST", "", { json: { command: "sleep 600" } });
      await ask("POST", `/${id}/signal`, { json: { signal, target: "tree" } });
      expect(await ask("GET", `/${id}/wait`)).toMatchObject({ signal: signal === "TERM" ? "SIGTERM" : signal });
      await ask("DELETE", `/${id}`);
    }
  });

  it("on a terminal can be resized", async () => {
    const { id } = await ask("POST", "", { json: { command: "cat", pty: { rows: 24, cols: 80 } } });
    await ask("POST", `/${id}/resize`, { json: { rows: 10, cols: 20 } });
    await ask("DELETE", `/${id}`);
  });

  it("are the sandbox's shell without a command", async () => {
    const shell = processResourceSchema.parse(await ask("POST", "", { json: { stdin: true } }));
    expect(shell.argv).toEqual(["/bin/sh"]);
    await ask("POST", `/${shell.id}/stdin?close=true`, { bytes: "exit 4\n" });
    expect(processExitSchema.parse(await ask("GET", `/${shell.id}/wait`))).toMatchObject({ exitCode: 4 });
    await ask("DELETE", `/${shell.id}`);
    const both = await node.request("POST", at, { json: { command: "true", argv: ["true"] } });
    expect(await errorOf(both)).toMatchObject({ status: 400, code: "invalid_argument" });
  });

  it("are waited for no longer than timeoutMs", async () => {
    const { id } = await ask("POST", "", { json: { command: "sleep 600" } });
    for (let each = 0; each < 3; each++) {
      expect(await errorOf(await node.request("GET", `${at}/${id}/wait?timeoutMs=5`))).toMatchObject({
        status: 504,
        reason: "wait_timeout",
      });
    }
    await ask("DELETE", `/${id}`);
  });

  it("have their output filtered by source", async () => {
    const { id } = await ask("POST", "", { json: { command: "echo out; echo err >&2" } });
    await ask("GET", `/${id}/wait`);
    const read = async (source: string) => (await node.request("GET", `${at}/${id}/output?source=${source}`)).text();
    expect([await read("stdout"), await read("stderr"), await read("all")]).toEqual(["out\n", "err\n", "out\nerr\n"]);
    await ask("DELETE", `/${id}`);
  });

  it("are followed to their end, also after another reader leaves", async () => {
    await using server = await node.listen();
    const { id } = await ask("POST", "", { json: { argv: ["cat"], stdin: true } });
    await ask("POST", `/${id}/stdin`, { bytes: "before " });
    const left = new AbortController();
    const leaving = await server.fetch("GET", `${at}/${id}/output?follow=true`, { signal: left.signal });
    const response = await server.fetch("GET", `${at}/${id}/output?follow=true`);
    expect(response.headers.get("sandpiper-start-offset")).toBe("0");
    const text = response.text();
    await leaving.body?.getReader().read();
    left.abort();
    await ask("POST", `/${id}/stdin?close=true`, { bytes: "after" });
    expect(await text).toBe("before after");
    await ask("DELETE", `/${id}`);
  });

  it("close the connection of a reader when their sandbox is destroyed", async () => {
    await using server = await node.listen();
    const sandbox = await node.create();
    const own = `/v1/sandboxes/${sandbox.id}/processes`;
    const started = await node.request("POST", own, { json: { command: "echo begun; sleep 600" } });
    const { id } = processResourceSchema.parse(await started.json());
    const response = await server.fetch("GET", `${own}/${id}/output?follow=true`);
    const reader = response.body?.getReader();
    await reader?.read();
    await node.request("DELETE", `/v1/sandboxes/${sandbox.id}`);
    await expect(reader?.read()).rejects.toThrow();
  });
});
