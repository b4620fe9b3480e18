import { mkdtempSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { SandboxError } from "@sandpiper/core";
import { LocalProvider } from "@sandpiper/providers";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestNode, type TestNode } from "../../../packages/node/src/http/testing/test-node.ts";
import { unpackImage as unpackSaved } from "../../../packages/providers/src/docker/checkpoint/checkpoint-files.ts";
import { unpackImage } from "../../../packages/providers/src/guest/archive/unpack-image.ts";
import { unpackKernel } from "../../../packages/providers/src/guest/kernel-image.ts";
import { SavedArchives } from "../../../packages/providers/src/vm-docker/image/saved-archives.ts";
import { fuzz, fuzzTimeoutMs } from "./fuzz-in-process.ts";
import { malformedImage, malformedTar, whole } from "./malformed-tar.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-fuzz-archives-"));
/** Nothing may appear here. */
const outside = join(root, "outside");
const inside = join(root, "inside");
const limits = { maxBytes: 4 * 2 ** 20, maxEntries: 100 };
let node: TestNode;
let url: string;

beforeAll(async () => {
  await mkdir(outside);
  await writeFile(join(outside, "kept"), "kept");
  node = await createTestNode({ provider: new LocalProvider({ stateDirectory: join(root, "state") }) });
  const { id } = await node.create({ diskMib: 1 });
  url = `/v1/sandboxes/${id}/files/archive?path=${inside}/target`;
});
afterAll(async () => {
  await node[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

/** A fresh directory for the content of one archive. */
async function fresh(): Promise<string> {
  await rm(inside, { recursive: true, force: true });
  await mkdir(join(inside, "target"), { recursive: true });
  return join(inside, "target");
}

async function requireContained(names: readonly string[] = ["target"]): Promise<void> {
  const others = (await readdir(inside)).filter((name) => !names.includes(name));
  expect([await readdir(outside), await readFile(join(outside, "kept"), "utf8"), others]).toEqual([
    ["kept"],
    "kept",
    [],
  ]);
}

/** The reason of a refusal, which must be one of these. */
async function refusal(work: Promise<unknown>, reasons: readonly string[]): Promise<string> {
  try {
    await work;
    return "unpacked";
  } catch (thrown) {
    if (!(thrown instanceof SandboxError) || !reasons.includes(thrown.reason)) throw thrown;
    return thrown.reason;
  }
}

async function upload(bytes: Uint8Array): Promise<string> {
  const response = await node.request("PUT", url, { bytes });
  const answer = (await response.json()) as { readonly reason?: string };
  if (response.status >= 500) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
  return answer.reason ?? "unpacked";
}

async function unpackAsImage(bytes: Uint8Array): Promise<string> {
  const path = join(root, "image");
  await writeFile(path, bytes);
  const scratch = join(inside, "scratch");
  return await refusal(unpackImage({ path, root: join(inside, "target"), scratch, limits }), ["rootfs_not_an_archive"]);
}

describe("malformed archives", () => {
  it("as uploads to a sandbox end in an error or below the target", { timeout: fuzzTimeoutMs }, async () => {
    const outcomes = await fuzz({
      name: "archives: uploads",
      inputs: malformedTar(outside),
      shortInputs: 60,
      send: async (bytes) => {
        await fresh();
        const outcome = await upload(bytes);
        await requireContained();
        return outcome;
      },
    });
    expect(Object.keys(outcomes)).toEqual(expect.arrayContaining(["unpacked", "bad_archive", "path_escapes"]));
  });

  it("as images of machines end in an error or below the root", { timeout: fuzzTimeoutMs }, async () => {
    const outcomes = await fuzz({
      name: "archives: images of machines",
      inputs: malformedImage(outside),
      shortInputs: 60,
      send: async (bytes) => {
        await fresh();
        const outcome = await unpackAsImage(bytes);
        await requireContained(["target", "scratch"]);
        return outcome;
      },
    });
    expect(Object.keys(outcomes).sort()).toEqual(["rootfs_not_an_archive", "unpacked"]);
  });

  it("from a container engine end in an error or in one directory", { timeout: fuzzTimeoutMs }, async () => {
    const outcomes = await fuzz({
      name: "archives: saves of an engine",
      inputs: malformedImage(outside),
      shortInputs: 60,
      send: async (bytes) => {
        const directory = await fresh();
        const saving = unpackSaved(Readable.from([bytes]), directory);
        const outcome = await refusal(saving, ["unknown_image_format"]);
        await requireContained();
        if (outcome === "unpacked") {
          const names = await readdir(directory);
          expect(names.filter((name) => !/^(?:config\.json|image\.json|layer-[0-9a-f]{64})$/.test(name))).toEqual([]);
        }
        return outcome;
      },
    });
    expect(Object.keys(outcomes).sort()).toEqual(["unknown_image_format", "unpacked"]);
  });

  it("in the list of an operator are read or left out", { timeout: fuzzTimeoutMs }, async () => {
    const path = join(root, "listed");
    await fuzz({
      name: "archives: the operator's list",
      inputs: malformedTar(outside),
      shortInputs: 60,
      // A negative size once made the reader return to the same header forever.
      examples: [Buffer.concat([whole("a", Buffer.alloc(0), { size: "-0000001000" }), Buffer.alloc(1024)])],
      send: async (bytes) => {
        await writeFile(path, bytes);
        return String(await new SavedArchives([path]).mayContain("image:1"));
      },
    });
  });

  it("as kernels are refused", { timeout: fuzzTimeoutMs }, async () => {
    const outcomes = await fuzz({
      name: "archives: kernels",
      inputs: malformedKernel(),
      shortInputs: 400,
      send: asKernel,
    });
    expect(outcomes["unusable_kernel"]).toBeGreaterThan(100);
  });
});

const asKernel = (file: Buffer) => refusal((async () => unpackKernel("kernel", file))(), ["unusable_kernel"]);

/** A bzImage with a compressed payload that is damaged or claims any size. */
function malformedKernel(): fc.Arbitrary<Buffer> {
  const content = fc.uint8Array({ maxLength: 400 });
  const lz4 = fc.tuple(content, fc.nat(0xffff_ffff), fc.nat(0xffff_ffff)).map(([bytes, blockBytes, claimed]) => {
    const block = Buffer.alloc(4);
    block.writeUInt32LE(blockBytes % 3 === 0 ? blockBytes : bytes.length);
    const size = Buffer.alloc(4);
    // A claim of at most 256 MiB is allocated, so most of them are small.
    size.writeUInt32LE(claimed % 5 === 0 ? 0xffff_ffff - (claimed % 1000) : claimed % 100_000);
    return Buffer.concat([Buffer.from([0x02, 0x21, 0x4c, 0x18]), block, bytes, size]);
  });
  const gzip = content.map((bytes) => gzipSync(bytes));
  const zstd = content.map((bytes) => Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd]), bytes]));
  const offsets = fc.tuple(fc.constantFrom(0, 0, 1, 0xffff_ffff), fc.constantFrom(0, 0, 1, 0xffff_ffff));
  return fc.tuple(fc.oneof(lz4, gzip, zstd, content), offsets).map(([payload, [start, length]]) => {
    const setup = Buffer.alloc(1024);
    setup.writeUInt8(1, 0x1f1);
    setup.write("HdrS", 0x202, "latin1");
    setup.writeUInt32LE(start, 0x248);
    setup.writeUInt32LE(length || payload.length, 0x24c);
    return Buffer.concat([setup, payload]);
  });
}
