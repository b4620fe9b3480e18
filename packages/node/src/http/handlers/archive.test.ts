import { fileListSchema } from "@sandpiper/protocol";
import { MockProvider } from "@sandpiper/providers";
import { type Header, pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, errorOf, type RequestBody, type TestNode } from "../testing/test-node.ts";
import { archiveName } from "./unpack-archive.ts";

let node: TestNode;
let at: string;
beforeAll(async () => {
  node = await createTestNode({ provider: new MockProvider() });
  at = `/v1/sandboxes/${(await node.create({ diskMib: 1 })).id}/files`;
});
afterAll(() => node[Symbol.asyncDispose]());

type EntryHeader = Partial<Header> & Pick<Header, "name">;

async function archiveOf(...entries: readonly (EntryHeader & { readonly content?: string })[]): Promise<Buffer> {
  const archive = pack();
  for (const { content, ...header } of entries) archive.entry(header, content ?? "");
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
}

const unpack = (path: string, bytes: RequestBody) => node.request("PUT", `${at}/archive?path=${path}`, { bytes });
const read = async (path: string) => (await node.request("GET", `${at}?path=${path}`)).text();

describe("an archive", () => {
  it("copies a directory", async () => {
    const long = `deep/${"x".repeat(90)}/${"y".repeat(90)}`;
    for (const [path, bytes] of Object.entries({
      a: "one",
      "deep/b": "two",
      [long]: "three",
      ümlaut: "four",
      empty: "",
    })) {
      await node.request("PUT", `${at}?path=/tmp/from/${encodeURIComponent(path)}`, { bytes });
    }
    const packed = await node.request("GET", `${at}/archive?path=/tmp/from`);
    expect(packed.headers.get("content-type")).toBe("application/x-tar");
    const unpacked = await unpack("/tmp/to/new", await packed.arrayBuffer());
    expect(await unpacked.json()).toEqual({ sizeBytes: 15 });
    const list = async (path: string) => {
      const { items } = fileListSchema.parse(
        await (await node.request("GET", `${at}/list?path=${path}&depth=0`)).json(),
      );
      return items.map(({ path, kind, sizeBytes, mode }) => ({ path, kind, sizeBytes, mode }));
    };
    expect(await list("/tmp/to/new")).toEqual(await list("/tmp/from"));
    expect(await read(`/tmp/to/new/${long}`)).toBe("three");
  });

  it("of an empty directory is empty, and of anything but a directory an error", async () => {
    await node.request("POST", `${at}/mkdir`, { json: { path: "/tmp/nothing" } });
    const empty = await node.request("GET", `${at}/archive?path=/tmp/nothing`);
    const bytes = await empty.arrayBuffer();
    expect(bytes.byteLength).toBe(1024);
    for (const path of ["/nowhere", "/tmp/from/a"]) {
      expect((await errorOf(await node.request("GET", `${at}/archive?path=${path}`))).status).toBeGreaterThanOrEqual(
        400,
      );
    }
    expect(await (await unpack("/tmp/fresh", bytes)).json()).toEqual({ sizeBytes: 0 });
  });

  it.each([
    ["an absolute name", { name: "/etc/x", content: "x" }, "path_escapes"],
    ["a name that leads up", { name: "a/../../x", content: "x" }, "path_escapes"],
    ["a device", { name: "null", type: "character-device" as const, devmajor: 1, devminor: 3 }, "unsupported_entry"],
    ["a pipe", { name: "pipe", type: "fifo" as const }, "unsupported_entry"],
    ["a hard link", { name: "passwd", type: "link" as const, linkname: "/etc/passwd" }, "unsupported_entry"],
  ])("with %s is refused", async (_, entry, reason) => {
    const response = await unpack("/tmp/refused", await archiveOf(entry));
    expect(await errorOf(response)).toMatchObject({ status: 400, reason });
    expect((await node.request("GET", `${at}/stat?path=/tmp/refused`)).status).toBe(404);
  });

  it("is refused if it is invalid or truncated", async () => {
    const whole = await archiveOf({ name: "a", content: "x".repeat(5000) });
    for (const bytes of [Buffer.from("no archive".repeat(100)), whole.subarray(0, 2000), whole.subarray(0, 700)]) {
      expect(await errorOf(await unpack("/tmp/bad", bytes))).toMatchObject({ status: 400, reason: "bad_archive" });
    }
    expect((await node.request("GET", `${at}/stat?path=/tmp/bad/a`)).status).toBe(404);
  });

  it("is refused if names or link targets are longer than the kernel's limit, or links need too much memory", async () => {
    const deep = "a/".repeat(50_000);
    for (const entry of [
      { name: `${deep}file` },
      { name: "link", type: "symlink", linkname: `${deep}x` },
      { name: "link", type: "symlink", linkname: "n\0ul", pax: { linkpath: "n\0ul" } },
    ] as const) {
      expect(await errorOf(await unpack("/tmp/long", await archiveOf(entry)))).toMatchObject({ reason: "bad_archive" });
    }
    const links = Array.from({ length: 4200 }, (_, at) => ({
      name: `${at}`,
      type: "symlink" as const,
      linkname: "x".repeat(4000),
    }));
    const large = await node.create({ diskMib: 64 });
    const bytes = await archiveOf(...links);
    const refused = await node.request("PUT", `/v1/sandboxes/${large.id}/files/archive?path=/tmp/links`, { bytes });
    expect(await errorOf(refused)).toMatchObject({ reason: "too_many_links" });
  });

  it("is refused if its headers announce more than the sandbox's disk", async () => {
    const huge = await archiveOf({ name: "a", content: "" });
    // A header that announces 2 GiB, with a valid checksum.
    huge.write("20000000000 ", 124, "latin1");
    huge.write("        ", 148, "latin1");
    const sum = huge.subarray(0, 512).reduce((total, byte) => total + byte, 0);
    huge.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
    expect(await errorOf(await unpack("/tmp/huge", huge))).toMatchObject({ status: 413, reason: "body_too_large" });
    expect((await node.request("GET", `${at}/stat?path=/tmp/huge/a`)).status).toBe(404);
  });
});

describe("archiveName", () => {
  it("returns a path relative to the target directory, and refuses one that leads outside", () => {
    expect(["./a/b", "a//b/", "a/./b"].map(archiveName)).toEqual(["a/b", "a/b", "a/b"]);
    expect(["./", "."].map(archiveName)).toEqual(["", ""]);
    for (const name of ["..", "a/..", "/a", "a\0b"]) expect(() => archiveName(name)).toThrow("lead outside");
  });
});
