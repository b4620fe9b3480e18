import { createHash } from "node:crypto";
import { lstat, mkdir, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync, zstdCompressSync } from "node:zlib";
import type { PullProgress } from "@sandpiper/core";
import { type Header, pack } from "tar-stream";
import { beforeEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { unpackImage } from "./unpack-image.ts";

type Entry = Partial<Header> & { readonly name: string } & { readonly content?: string | Buffer };

const directory = freshDirectory("unpack");
const root = join(directory, "outer/root");
beforeEach(() => mkdir(root, { recursive: true }));

async function tar(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", ...header } of entries) archive.entry({ mtime: new Date(0), ...header }, content);
  archive.finalize();
  return await buffer(archive);
}

const file = (name: string, content = name): Entry => ({ name, content });
const folder = (name: string): Entry => ({ name, type: "directory", mode: 0o755 });
const symlinkTo = (name: string, linkname: string): Entry => ({ name, type: "symlink", linkname });
const hardLinkTo = (name: string, linkname: string): Entry => ({ name, type: "link", linkname });
const sha256 = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");

/** The format of `docker save`. */
async function saved(...layers: readonly (readonly Entry[])[]): Promise<Buffer> {
  const files = await Promise.all(
    layers.map(async (entries, index) => ({ name: `${index}/layer.tar`, content: await tar(entries) })),
  );
  const manifest = [{ Config: "config.json", RepoTags: ["test:1"], Layers: files.map(({ name }) => name) }];
  return await tar([...files, file("config.json", "{}"), file("manifest.json", JSON.stringify(manifest))]);
}

/** An OCI layout; each manifest has one layer. */
async function layout(images: readonly { readonly architecture: string; readonly layer: Buffer }[]): Promise<Buffer> {
  const blobs = new Map<string, string | Buffer>();
  const add = (content: string | Buffer) => {
    const digest = sha256(content);
    blobs.set(`blobs/sha256/${digest}`, content);
    return `sha256:${digest}`;
  };
  const manifests = images.map(({ architecture, layer }) => ({
    digest: add(JSON.stringify({ layers: [{ digest: add(layer) }] })),
    platform: { architecture },
  }));
  const index = { manifests: [{ digest: add(JSON.stringify({ manifests })) }] };
  const entries = [...blobs].map(([name, content]) => ({ name, content }));
  return await tar([file("oci-layout", "{}"), file("index.json", JSON.stringify(index)), ...entries]);
}

async function unpack(archive: Buffer, more: { maxBytes?: number; maxEntries?: number } = {}): Promise<PullProgress[]> {
  const path = join(directory, "archive");
  await writeFile(path, archive);
  const reported: PullProgress[] = [];
  const limits = { maxBytes: 2 ** 30, maxEntries: 100, ...more };
  const scratch = join(directory, "scratch");
  await unpackImage({ path, root, scratch, limits, onProgress: (progress) => reported.push(progress) });
  return reported;
}

const names = async (path = "") => (await readdir(join(root, path))).sort();
const read = (path: string) => readFile(join(root, path), "utf8");
const refusal = (why: string) => ({
  code: "invalid_argument",
  reason: "rootfs_not_an_archive",
  message: expect.stringContaining(why),
});

// Not a unit test: it sets owners, which needs root.
describe("an archive", () => {
  it("of a container's files is unpacked with owners, modes and times", async () => {
    const tool = { ...file("usr/bin/tool", "x"), mode: 0o4755, uid: 7, gid: 8, mtime: new Date(1_000_000_000_000) };
    const progress = await unpack(
      await tar([
        { ...folder("./"), mode: 0o755 },
        folder("usr/bin"),
        tool,
        symlinkTo("bin", "usr/bin"),
        hardLinkTo("again", "usr/bin/tool"),
      ]),
    );
    const info = await stat(join(root, "usr/bin/tool"));
    expect([info.mode & 0o7777, info.uid, info.gid, info.mtimeMs]).toEqual([0o4755, 7, 8, 1_000_000_000_000]);
    expect(await readlink(join(root, "bin"))).toBe("usr/bin");
    expect((await stat(join(root, "again"))).ino).toBe(info.ino);
    expect(progress[0]).toMatchObject({ layer: "layer 1", status: "unpacking" });
    expect(progress.at(-1)).toMatchObject({ layer: "layer 1", status: "complete" });
  });

  it.each([
    ["gzip", gzipSync],
    ["zstd", zstdCompressSync],
  ])("may be compressed with %s", async (_name, packed) => {
    await unpack(packed(await tar([file("one")])));
    expect(await read("one")).toBe("one");
  });

  it("of a saved image is unpacked layer by layer, without the files that upper layers remove", async () => {
    await unpack(
      await saved(
        [
          folder("etc"),
          file("etc/kept"),
          file("etc/gone"),
          folder("opt"),
          file("opt/old"),
          folder("opt/sub"),
          file("opt/sub/old"),
        ],
        [file("etc/.wh.gone", ""), file("opt/new"), file("opt/.wh..wh..opq", ""), file("etc/kept", "changed")],
        [file("etc/gone", "back")],
      ),
    );
    expect([await names(), await names("etc"), await names("opt")]).toEqual([
      ["etc", "opt"],
      ["gone", "kept"],
      ["new"],
    ]);
    expect([await read("etc/kept"), await read("etc/gone")]).toEqual(["changed", "back"]);
    expect(await readdir(directory)).not.toContain("scratch");
  });

  it("of a saved image may contain a repeated layer as a link", async () => {
    const layer = await tar([file("one")]);
    const manifest = [{ Layers: ["a/layer.tar", "b/layer.tar"] }];
    const link = symlinkTo("b/layer.tar", "../a/layer.tar");
    await unpack(
      await tar([{ name: "a/layer.tar", content: layer }, link, file("manifest.json", JSON.stringify(manifest))]),
    );
    expect(await names()).toEqual(["one"]);
  });

  it("of an OCI layout is unpacked for this machine's processor", async () => {
    const own = process.arch === "x64" ? "amd64" : process.arch;
    const [ours, theirs] = [gzipSync(await tar([file("ours")])), gzipSync(await tar([file("theirs")]))];
    await unpack(
      await layout([
        { architecture: "riscv64", layer: theirs },
        { architecture: own, layer: ours },
      ]),
    );
    expect(await names()).toEqual(["ours"]);
    const foreign = unpack(await layout([{ architecture: "riscv64", layer: theirs }]));
    await expect(foreign).rejects.toMatchObject(refusal("no image for"));
  });

  it("never writes outside its directory, with any names and links", async () => {
    await unpack(
      await saved([symlinkTo("out", directory), symlinkTo("up", "..")], [file("out/escaped"), file("up/escaped")]),
    );
    expect(await readdir(join(directory, "outer"))).toEqual(["root"]);
    expect(await readdir(directory)).not.toContain("escaped");
    expect((await lstat(join(root, "out"))).isDirectory()).toBe(true);
    await rm(root, { recursive: true });
    await mkdir(root);
    await unpack(await tar([file("/absolute")]));
    expect(await names()).toEqual(["absolute"]);
  });

  it.each([
    ["a name that leaves the directory", [file("../escaped")], "../escaped"],
    ["a name that leaves the directory in a subdirectory", [file("a/../../escaped")], "escaped"],
    ["a hard link that leaves the directory", [hardLinkTo("link", "../../archive")], "archive"],
    [
      "a hard link to a symlink",
      [symlinkTo("to", "/etc/passwd"), hardLinkTo("link", "to")],
      "is not a file of the archive",
    ],
    ["a whiteout of its parent directory", [folder("a"), file("a/.wh...", "")], ".wh..."],
    ["too many files", Array.from({ length: 101 }, (_, at) => file(`${at}`, "")), "more than 100 files"],
  ])("is rejected with %s", async (_title, entries, why) => {
    await expect(unpack(await tar(entries))).rejects.toMatchObject(refusal(why));
    expect(await readdir(join(directory, "outer"))).toEqual(["root"]);
  });

  it("is rejected when it has too many directories that it does not list, too many layers or too large manifests", async () => {
    const deep = ["x", "y"].map((name) => file(`${`${name}/`.repeat(60)}file`, ""));
    await expect(unpack(await tar(deep))).rejects.toMatchObject(refusal("more than 100 files"));
    const manifest = JSON.stringify([{ Layers: Array.from({ length: 1001 }, () => "a/layer.tar") }]);
    await expect(unpack(await tar([file("manifest.json", manifest)]))).rejects.toMatchObject(refusal("1000 layers"));
    const blob = `{${" ".repeat(1_000_000)}}`;
    const blobs = Array.from({ length: 17 }, (_, at) => file(`blobs/sha256/${at}`, blob));
    await expect(unpack(gzipSync(await tar(blobs)))).rejects.toMatchObject(refusal("bytes of manifests"));
  });

  it("is rejected when its uncompressed size exceeds the limit", async () => {
    const bomb = gzipSync(await tar([file("zeros", "0".repeat(2 * 2 ** 20))]));
    expect(bomb.length).toBeLessThan(10_000);
    await expect(unpack(bomb, { maxBytes: 2 ** 20 })).rejects.toMatchObject(refusal("more than 1048576 bytes"));
  });

  it("is rejected when it is truncated, or when its manifest does not match its content", async () => {
    const whole = await tar([file("one", "1".repeat(5000))]);
    await expect(unpack(whole.subarray(0, 2000))).rejects.toMatchObject(refusal(""));
    const manifest = (text: object) => tar([file("manifest.json", JSON.stringify(text))]);
    await expect(unpack(await manifest([{ Layers: ["layer.tar"] }]))).rejects.toMatchObject(refusal("is missing"));
    await expect(unpack(await manifest([{}, {}]))).rejects.toMatchObject(refusal("exactly one image"));
  });
});
