import { createServer } from "node:http";
import { MockProvider } from "@sandpiper/providers";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, type TestNode } from "../http/testing/test-node.ts";
import { type AttachedSockets, attachSockets } from "../upgrade/attach-sockets.ts";
import { inProcessFetch, ownClients } from "./own-client.ts";

let node: TestNode;
let sockets: AttachedSockets;
let clientOf: ReturnType<typeof ownClients>;

beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  const server = createServer();
  sockets = attachSockets(server, { ...node, logger: pino({ level: "silent" }) });
  clientOf = ownClients({ app: node.app, server });
});

afterAll(async () => {
  await sockets.close();
  await node[Symbol.asyncDispose]();
});

describe("a client inside the node's process", () => {
  it("calls, streams and closes without a port", async () => {
    await using client = clientOf(node.owner, "http://node.example");
    await using sandbox = await client.sandboxes.create({ provider: "mock" });
    await sandbox.files.write("a.txt", "text");
    expect(await sandbox.files.readText("a.txt")).toBe("text");
    const { stdout, exitCode } = await sandbox.exec("echo hello");
    expect({ stdout, exitCode }).toEqual({ stdout: "hello\n", exitCode: 0 });
    const process = await sandbox.start("cat", { stdin: true });
    await process.write("line\n");
    await process.closeStdin();
    const pieces: Uint8Array[] = [];
    for await (const { bytes } of process.output) pieces.push(bytes);
    expect(Buffer.concat(pieces).toString()).toBe("line\n");
  });

  it("has the rights of its key", async () => {
    await using client = clientOf(node.key({ scopes: ["read"] }), "http://node.example");
    await expect(client.sandboxes.create()).rejects.toMatchObject({ code: "permission_denied" });
    await using unknown = clientOf("spk_nobody", "http://node.example");
    await expect(unknown.sandboxes.create()).rejects.toMatchObject({ code: "unauthenticated" });
  });
});

describe("inProcessFetch", () => {
  const never = { fetch: () => new Promise<Response>(() => {}) };

  it("rejects when aborted before the answer", async () => {
    const abort = new AbortController();
    const answer = inProcessFetch(never)("http://x/", { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(answer).rejects.toThrow("enough");
    await expect(inProcessFetch(never)("http://x/", { signal: abort.signal })).rejects.toThrow("enough");
  });

  it("fails the body when aborted during the answer", async () => {
    const abort = new AbortController();
    const canceled = Promise.withResolvers<void>();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(3)),
      cancel: () => canceled.resolve(),
    });
    const response = await inProcessFetch({ fetch: () => new Response(body) })("http://x/", { signal: abort.signal });
    const whole = response.arrayBuffer();
    abort.abort(new Error("enough"));
    await expect(whole).rejects.toThrow("enough");
    await canceled.promise;
  });
});
