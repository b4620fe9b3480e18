import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { rejection } from "@sandpiper/core/testing";
import { extract, type Header, pack } from "tar-stream";
import { describe, expect, it } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { flattenImage, packImage, unpackImage } from "./checkpoint-files.ts";

type Entry = Partial<Header> & { readonly name: string; readonly content?: string | Buffer };

const sha256 = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");
const LOWER = Buffer.alloc(200_000, "lower");
const UPPER = Buffer.from("upper");
const PACKED = { reference: "saved:one", labels: { owner: "me" } };
const CONFIG = JSON.stringify({ architecture: "amd64", rootfs: { diff_ids: [] } });

function archiveOf(entries: readonly Entry[]): Readable {
  const archive = pack();
  for (const { content = "", ...header } of entries) archive.entry(header, content);
  archive.finalize();
  return Readable.from(archive);
}

async function entriesOf(archive: Readable): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for await (const entry of archive.pipe(extract())) found.set(entry.header.name, await buffer(entry));
  return found;
}

/** Each has three layers; the last repeats the first. */
const formats: readonly (readonly [string, readonly Entry[]])[] = [
  [
    "of older engines, with a directory for each layer",
    [
      { name: `${sha256(CONFIG)}.json`, content: CONFIG },
      { name: "aaa/", type: "directory" },
      { name: "aaa/VERSION", content: "1.0" },
      { name: "aaa/json", content: "{}" },
      { name: "aaa/layer.tar", content: LOWER },
      { name: "bbb/layer.tar", content: UPPER },
      { name: "ccc/layer.tar", type: "symlink", linkname: "../aaa/layer.tar" },
      {
        name: "manifest.json",
        content: JSON.stringify([
          { Config: `${sha256(CONFIG)}.json`, Layers: ["aaa/layer.tar", "bbb/layer.tar", "ccc/layer.tar"] },
        ]),
      },
      { name: "repositories", content: "{}" },
    ],
  ],
  [
    "of newer engines, with blobs",
    [
      { name: "blobs/sha256/", type: "directory" },
      { name: `blobs/sha256/${sha256(LOWER)}`, content: LOWER },
      { name: `blobs/sha256/${sha256(CONFIG)}`, content: CONFIG },
      { name: `blobs/sha256/${sha256(UPPER)}`, content: UPPER },
      { name: "index.json", content: "{}" },
      {
        name: "manifest.json",
        content: JSON.stringify([
          {
            Config: `blobs/sha256/${sha256(CONFIG)}`,
            Layers: [LOWER, UPPER, LOWER].map((layer) => `blobs/sha256/${sha256(layer)}`),
          },
        ]),
      },
      { name: "oci-layout", content: "{}" },
    ],
  ],
];

describe("the files of a container's checkpoint", () => {
  const directory = freshDirectory("files");
  const again = freshDirectory("files-again");

  it.each<[string, readonly Entry[]]>([
    ["more than 1024 files", Array.from({ length: 1025 }, (_, at) => ({ name: `${at}`, type: "directory" }))],
    ["its manifest has 1048577 bytes", [{ name: "manifest.json", content: " ".repeat(1024 * 1024 + 1) }]],
    [
      "its config is one of its layers",
      [{ name: "a" }, { name: "manifest.json", content: '[{"Config":"a","Layers":["a"]}]' }],
    ],
    ["does not describe", [{ name: "manifest.json", content: '[{"Config":"a","Layers":[null]}]' }]],
    ["long name", [{ name: "x/".repeat(3000) }]],
  ])("are not unpacked from an archive with a flaw: %s", async (why, entries) => {
    const error = await rejection(unpackImage(archiveOf(entries), directory));
    expect(error).toMatchObject({ reason: "unknown_image_format", message: expect.stringContaining(why) });
  });

  it.each(formats)("are unpacked from an image saved in the format %s", async (_, entries) => {
    await unpackImage(archiveOf(entries), directory);
    const names = ["config.json", "image.json", `layer-${sha256(LOWER)}`, `layer-${sha256(UPPER)}`];
    expect((await readdir(directory)).toSorted()).toEqual(names.toSorted());
    expect(await readFile(join(directory, "config.json"), "utf8")).toBe(CONFIG);
    expect(await readFile(join(directory, `layer-${sha256(LOWER)}`))).toEqual(LOWER);
  });

  it("are packed into an image with its layers in order and with the given reference and labels", async () => {
    await unpackImage(archiveOf(formats[0]?.[1] ?? []), directory);
    const entries = await entriesOf(await packImage(directory, PACKED));
    const [image] = JSON.parse(String(entries.get("manifest.json")));
    expect(image.RepoTags).toEqual(["saved:one"]);
    const config = { ...JSON.parse(CONFIG), config: { Labels: PACKED.labels } };
    expect(JSON.parse(String(entries.get(image.Config)))).toEqual(config);
    expect(image.Layers.map((name: string) => entries.get(name))).toEqual([LOWER, UPPER, LOWER]);
    // A packed image can be unpacked again: there is one format.
    await unpackImage(await packImage(directory, PACKED), again);
    expect(await readdir(again)).toEqual(await readdir(directory));
  });

  it("may be one layer with all files", async () => {
    await flattenImage(Readable.from([LOWER, UPPER]), directory, { architecture: "amd64", created: "now" });
    const whole = Buffer.concat([LOWER, UPPER]);
    const entries = await entriesOf(await packImage(directory, PACKED));
    const [image] = JSON.parse(String(entries.get("manifest.json")));
    expect(image.Layers.map((name: string) => entries.get(name))).toEqual([whole]);
    expect(JSON.parse(String(entries.get(image.Config)))).toMatchObject({
      architecture: "amd64",
      rootfs: { type: "layers", diff_ids: [`sha256:${sha256(whole)}`] },
    });
  });

  it.each<readonly [string, Readable]>([
    ["has no manifest", archiveOf([{ name: "index.json", content: "{}" }])],
    ["names a missing layer", archiveOf(formats[1]?.[1].filter(({ content }) => content !== UPPER) ?? [])],
    ["contains several images", archiveOf([{ name: "manifest.json", content: "[{},{}]" }])],
  ])("are not written from an archive that %s", async (_, archive) => {
    expect(await rejection(unpackImage(archive, directory))).toMatchObject({
      code: "unimplemented",
      reason: "unknown_image_format",
    });
  });

  it("are not written from a truncated archive", async () => {
    const whole = await buffer(archiveOf(formats[1]?.[1] ?? []));
    await rejection(unpackImage(Readable.from([whole.subarray(0, 100_000)]), directory));
    expect(await readdir(directory)).not.toContain("image.json");
  });

  it("are rejected when one of them is damaged or missing", async () => {
    const damaged = { code: "data_loss", reason: "checkpoint_damaged" };
    expect(await rejection(packImage(directory, PACKED))).toMatchObject(damaged);
    await unpackImage(archiveOf(formats[0]?.[1] ?? []), directory);
    await rm(join(directory, `layer-${sha256(UPPER)}`));
    expect(await rejection(packImage(directory, PACKED))).toMatchObject(damaged);
    await writeFile(join(directory, "image.json"), JSON.stringify({ version: 1, layers: ["../../etc/passwd"] }));
    expect(await rejection(packImage(directory, PACKED))).toMatchObject(damaged);
  });
});
