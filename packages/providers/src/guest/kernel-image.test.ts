import { readFile } from "node:fs/promises";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { findKernel } from "./kernel.ts";
import { unpackKernel } from "./kernel-image.ts";

const SECTOR_BYTES = 512;
const kernel = Buffer.from(`\x7fELF${"all work and no play ".repeat(40)}`, "latin1");
const size = Buffer.alloc(4);
size.writeUInt32LE(kernel.length);

/** A bzImage with one sector of set-up code before the compressed kernel. */
function bzImage(payload: Buffer): Buffer {
  const file = Buffer.alloc(2 * SECTOR_BYTES + 64);
  file.writeUInt8(1, 0x1f1);
  file.write("HdrS", 0x202, "latin1");
  file.writeUInt32LE(64, 0x248);
  file.writeUInt32LE(payload.length, 0x24c);
  return Buffer.concat([file, payload, Buffer.alloc(16)]);
}

/** One block: literals without repetitions, then a match that repeats the last bytes. */
function lz4(): Buffer {
  const literals = kernel.subarray(0, 25);
  const repeated = kernel.length - 25 - 5;
  const lengths = [...more(literals.length - 15)];
  const block = Buffer.from([
    0xff,
    ...lengths,
    ...literals,
    ...[21, 0],
    ...more(repeated - 4 - 15),
    0x50,
    ...kernel.subarray(-5),
  ]);
  const header = Buffer.from([0x02, 0x21, 0x4c, 0x18, 0, 0, 0, 0]);
  header.writeUInt32LE(block.length, 4);
  return Buffer.concat([header, block, size]);
}

function* more(rest: number): Generator<number> {
  let left = rest;
  for (; left >= 255; left -= 255) yield 255;
  yield left;
}

// Not a unit test: it unpacks the kernel that set-up downloads.
describe("unpackKernel", () => {
  it.each([
    ["LZ4", lz4()],
    ["gzip", gzipSync(kernel)],
    ["zstd", Buffer.concat([zstdCompressSync(kernel), size])],
  ])("unpacks a kernel that is compressed with %s", (_name, payload) => {
    expect(unpackKernel("/boot/vmlinuz", bzImage(payload)).equals(kernel)).toBe(true);
  });

  it("returns an uncompressed kernel as it is", () => {
    expect(unpackKernel("/boot/vmlinux", kernel)).toBe(kernel);
  });

  it("refuses a file that is not a kernel, with its path and the reason", () => {
    const refused = (file: Buffer) => expect(() => unpackKernel("/boot/x", file));
    refused(Buffer.from("text")).toThrow(/"\/boot\/x".*neither/);
    refused(bzImage(Buffer.from("something"))).toThrow(/not supported/);
    refused(bzImage(gzipSync("no kernel"))).toThrow(/not a kernel/);
    const damaged = Buffer.concat([lz4().subarray(0, 40), size]);
    refused(bzImage(damaged)).toThrow(/"\/boot\/x"/);
  });

  it("unpacks Debian's kernel to a complete ELF file", async () => {
    const found = await findKernel();
    const unpacked = unpackKernel(found.path, await readFile(found.path));
    const header = Number(unpacked.readBigUInt64LE(0x28)) + unpacked.readUInt16LE(0x3a) * unpacked.readUInt16LE(0x3e);
    const names = unpacked.subarray(Number(unpacked.readBigUInt64LE(header + 0x18)));
    // The names of the sections are near the end of the file.
    expect(names.subarray(0, 10).toString("latin1")).toBe("\0.shstrtab");
  });
});
