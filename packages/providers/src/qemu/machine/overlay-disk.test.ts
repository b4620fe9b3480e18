import { open, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../host/testing/shared.ts";
import { filledClusters, writeOverlayDisk } from "./overlay-disk.ts";

const directory = sharedDirectory("disk");

const CLUSTER = 65_536;

describe("an overlay disk", () => {
  it("contains only its tables while it is empty", async () => {
    const path = join(directory, "empty");
    await writeOverlayDisk(path, { sizeBytes: 2 ** 40 });
    expect((await stat(path)).size).toBe(4 * CLUSTER);
  });

  it("never overwrites another disk", async () => {
    const path = join(directory, "there");
    await writeFile(path, "there");
    await expect(writeOverlayDisk(path, { sizeBytes: 2 ** 20 })).rejects.toMatchObject({ code: "EEXIST" });
  });

  it("maps each cluster through the tables of the qcow2 format", async () => {
    const path = join(directory, "filled");
    const far = 10_000;
    async function* clusters() {
      yield [3, cluster("first")] as const;
      yield [far, cluster("second")] as const;
    }
    await writeOverlayDisk(path, { sizeBytes: 2 ** 30, clusters: clusters() });
    // Four clusters of header and tables, two of pointers, two of data.
    expect((await stat(path)).size).toBe(8 * CLUSTER);
    expect(await read(path, 3 * CLUSTER, 5)).toBe("first");
    expect(await read(path, far * CLUSTER, 6)).toBe("second");
    expect(await read(path, 4 * CLUSTER, 5)).toBeUndefined();
  });
});

describe("filledClusters", () => {
  it("yields the clusters that contain more than zeros", async () => {
    const path = join(directory, "raw");
    {
      await using file = await open(path, "w");
      await file.truncate(80 * CLUSTER);
      await file.write(Buffer.from("x"), 0, 1, 3 * CLUSTER + 5);
      await file.write(Buffer.from("y"), 0, 1, 71 * CLUSTER);
    }
    const found: number[] = [];
    for await (const [index, bytes] of filledClusters(path)) found.push(index, bytes.length);
    expect(found).toEqual([3, CLUSTER, 71, CLUSTER]);
  });
});

function cluster(text: string): Buffer {
  const bytes = Buffer.alloc(CLUSTER);
  bytes.write(text);
  return bytes;
}

/** Reads like QEMU; undefined where no cluster is allocated. */
async function read(path: string, position: number, size: number): Promise<string | undefined> {
  await using file = await open(path);
  const pointerAt = async (at: number) => {
    const { buffer } = await file.read(Buffer.alloc(8), 0, 8, at);
    return Number(buffer.readBigUInt64BE() & 0x00ff_ffff_ffff_fe00n);
  };
  const index = Math.floor(position / CLUSTER);
  const top = await pointerAt(40);
  const table = await pointerAt(top + Math.floor(index / 8192) * 8);
  if (table === 0) return undefined;
  const data = await pointerAt(table + (index % 8192) * 8);
  if (data === 0) return undefined;
  const { buffer } = await file.read(Buffer.alloc(size), 0, size, data + (position % CLUSTER));
  return buffer.toString();
}
