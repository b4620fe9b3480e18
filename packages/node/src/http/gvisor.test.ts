import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Header, pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProvider } from "../embedded/create-provider.ts";
import { createTestNode, errorOf, type TestNode } from "./testing/test-node.ts";

let node: TestNode;
let home: string;
let at: string;
let server: Awaited<ReturnType<TestNode["listen"]>>;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "sandpiper-http-gvisor-"));
  node = await createTestNode({ provider: createProvider("gvisor", { home }) });
  at = `/v1/sandboxes/${(await node.create()).id}`;
  server = await node.listen();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await node?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
});

async function exec(command: string): Promise<string> {
  const response = await server.fetch("POST", `${at}/exec`, { json: { command } });
  const { stdout, stderr } = (await response.json()) as { stdout: string; stderr: string };
  return stdout + stderr;
}

async function archiveOf(entries: readonly (Partial<Header> & { name: string; content?: string })[]): Promise<Buffer> {
  const archive = pack();
  for (const { content, ...header } of entries) archive.entry(header, content ?? "");
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
}

const unpack = (path: string, bytes: Buffer) => server.fetch("PUT", `${at}/files/archive?path=${path}`, { bytes });

describe("a gVisor sandbox over REST", () => {
  it("preserves symlinks and modes in archives", async () => {
    await exec(
      "mkdir -p src/bin && echo run > src/bin/tool && chmod 755 src/bin/tool && ln -s bin/tool src/link && mkfifo src/pipe",
    );
    const packed = await server.fetch("GET", `${at}/files/archive?path=src`);
    expect(packed.status).toBe(200);
    const unpacked = await unpack("copy", Buffer.from(await packed.arrayBuffer()));
    expect(await unpacked.json()).toEqual({ sizeBytes: 4 });
    expect(await exec("cd copy && readlink link && cat link && stat -c %a bin/tool && ls")).toBe(
      "bin/tool\nrun\n755\nbin\nlink\n",
    );
  });

  it("lets no archive write through a link, whether in the archive or in the sandbox", async () => {
    const own = [
      { name: "out", type: "symlink" as const, linkname: "/tmp/outside" },
      { name: "out/file", content: "escaped" },
    ];
    await exec("mkdir -p /tmp/outside target && ln -s /tmp/outside target/there && ln -s /tmp/outside/f target/file");
    expect((await unpack("own", await archiveOf(own))).status).toBeGreaterThanOrEqual(400);
    const through = await unpack("target", await archiveOf([{ name: "there/file", content: "escaped" }]));
    expect(await errorOf(through)).toMatchObject({ status: 412, reason: "path_through_link" });
    expect((await unpack("target", await archiveOf([{ name: "file", content: "replaced" }]))).status).toBe(200);
    expect(await exec("cat target/file; ls /tmp/outside | wc -l")).toBe("replaced0\n");
  });

  it("reads files of /proc, whose size is unknown", async () => {
    const response = await server.fetch("GET", `${at}/files?path=/proc/self/status`);
    expect(await response.text()).toContain("Name:");
  });

  it("resolves paths inside the sandbox", async () => {
    await server.fetch("PUT", `${at}/files?path=../../../../../../tmp/marker`, { bytes: "inside" });
    expect(await exec("cat /tmp/marker")).toBe("inside");
  });

  it("transfers large files with constant memory, both ways", async () => {
    const size = 256 * 1024 * 1024;
    const piece = Buffer.alloc(1024 * 1024, 7);
    const source = async function* () {
      for (let sent = 0; sent < size; sent += piece.length) yield piece;
    };
    const before = process.memoryUsage().rss;
    let most = before;
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 20);
    try {
      const written = await server.fetch("PUT", `${at}/files?path=big`, {
        bytes: ReadableStream.from(source()) as never,
      });
      expect(await written.json()).toEqual({ sizeBytes: size });
      const read = await server.fetch("GET", `${at}/files?path=big`);
      let count = 0;
      for await (const bytes of read.body ?? []) count += bytes.length;
      expect(count).toBe(size);
    } finally {
      clearInterval(timer);
    }
    // Client and server are one process here, so the limit covers the garbage of both.
    expect(most - before).toBeLessThan(200 * 1024 * 1024);
  });
});
