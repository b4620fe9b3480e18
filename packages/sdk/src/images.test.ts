import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { Client } from "./client.ts";
import { createMemoryServer } from "./testing/create-memory-server.ts";

/** A client of a node that answers pulls with this text, split into pieces of this size. */
function setUp(text: string, pieceBytes = 7) {
  const server = createMemoryServer();
  const asked: string[] = [];
  let isCanceled = false;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const { pathname } = new URL(String(input));
    asked.push(`${pathname} ${init?.body ?? ""}`);
    if (pathname !== "/v1/images/pull") return server.clientOptions.fetch(input, init);
    const bytes = new TextEncoder().encode(text);
    let at = 0;
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, at + pieceBytes));
      at += pieceBytes;
    };
    const cancel = () => {
      isCanceled = true;
    };
    return new Response(new ReadableStream({ pull, cancel }), { status: 200 });
  };
  return { client: new Client({ ...server.clientOptions, fetch }), asked, isCanceled: () => isCanceled };
}

const layer = { image: "größe:1", layer: "a1", status: "downloading", doneBytes: 5, totalBytes: null };
const progress = `:\n\nevent: progress\ndata: ${JSON.stringify(layer)}\n\n:\n\n`;
const done = 'event: done\ndata: {"image":"größe:1"}\n\n';

describe("a pull", () => {
  it("reports layers and resolves when the image is complete, however the answer is split", async () => {
    for (const pieceBytes of [1, 7, 10_000]) {
      const { client, asked, isCanceled } = setUp(`${progress}${progress}${done}and no more`, pieceBytes);
      const seen: unknown[] = [];
      await client.images.pull("größe:1", { policy: "always", onProgress: (each) => seen.push(each) });
      expect(seen).toEqual([layer, layer]);
      expect(asked).toEqual(['/v1/images/pull {"policy":"always","image":"größe:1"}']);
      if (pieceBytes < 10_000) expect(isCanceled()).toBe(true);
    }
  });

  it("fails with the node's error", async () => {
    const body = { code: "not_found", reason: "image_not_found", message: "no image", details: {}, requestId: "r" };
    const { client } = setUp(`${progress}event: error\ndata: ${JSON.stringify(body)}\n\n`);
    expect(await rejection(client.images.pull("a:1"))).toMatchObject({ code: "not_found", reason: "image_not_found" });
  });

  it("fails when the answer is cut", async () => {
    expect(await rejection(setUp(progress).client.images.pull("a:1"))).toMatchObject({ reason: "answer_cut" });
  });

  it("precedes only the creation of a container with a named image", async () => {
    const { client, asked } = setUp(done);
    const container = { imagePullPolicy: "always" } as const;
    await client.sandboxes.create({ provider: "docker", image: "größe:1", container });
    expect(asked[0]).toBe('/v1/images/pull {"provider":"docker","policy":"always","image":"größe:1"}');
    expect(asked).toHaveLength(2);
    await client.sandboxes.create({ provider: "docker" });
    await client.sandboxes.create({ image: "python" });
    expect(asked).toHaveLength(4);
  });

  it("precedes the creation of a virtual machine if the caller wants progress", async () => {
    const { client, asked } = setUp(done);
    await client.sandboxes.create({ provider: "qemu" });
    expect(asked).toHaveLength(1);
    await client.sandboxes.create({ provider: "qemu", onProgress: () => {} });
    expect(asked[1]).toBe('/v1/images/pull {"provider":"qemu","image":"host"}');
    expect(asked).toHaveLength(3);
  });
});

describe("a rebuild", () => {
  it("ends the processes and resolves with the sandbox", async () => {
    const { client } = setUp(done);
    const sandbox = await client.sandboxes.create({ name: "one" });
    const process = await sandbox.start(["sleep", "1"]);
    expect(await sandbox.rebuild()).toMatchObject({ id: sandbox.id, state: "ready", name: "one" });
    expect(await sandbox.processes()).toEqual([]);
    await process.wait().catch(() => {});
  });
});
