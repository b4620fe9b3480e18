import { open } from "node:fs/promises";
import { makeBlankDisk } from "../../guest/format-disk.ts";

const CLUSTER_BITS = 16;
const CLUSTER_BYTES = 1 << CLUSTER_BITS;
/** How many clusters of data one cluster of pointers leads to. */
const POINTERS = CLUSTER_BYTES / 8;
const HEADER_BYTES = 104;
/** Marks a cluster that only one pointer refers to, so that QEMU writes to it in place. */
const COPIED = 1n << 63n;

export interface OverlayDiskOptions {
  readonly sizeBytes: number;
  /** The content by cluster number, in order; missing clusters read from the backing disk, or as zeros. */
  readonly clusters?: AsyncIterable<readonly [number, Uint8Array]>;
}

/**
 * Writes a sparse disk in QEMU's format (qcow2, version 3). QEMU's own tool is in another package, and starting it for
 * every instance would take longer.
 */
export async function writeOverlayDisk(path: string, { sizeBytes, clusters }: OverlayDiskOptions): Promise<void> {
  const tables = Math.ceil(sizeBytes / CLUSTER_BYTES / POINTERS);
  const layout = { refcountTable: 1, refcountBlock: 2, topTable: 3 };
  const top = Buffer.alloc(CLUSTER_BYTES);
  const second = new Map<number, { readonly cluster: number; readonly pointers: Buffer }>();
  let next = 4;
  await using file = await open(path, "wx", 0o600);
  const put = (cluster: number, bytes: Uint8Array) => file.write(bytes, 0, bytes.length, cluster * CLUSTER_BYTES);
  for await (const [index, bytes] of clusters ?? []) {
    const number = Math.floor(index / POINTERS);
    let table = second.get(number);
    if (table === undefined) {
      table = { cluster: next++, pointers: Buffer.alloc(CLUSTER_BYTES) };
      second.set(number, table);
      top.writeBigUInt64BE(pointer(table.cluster), number * 8);
    }
    table.pointers.writeBigUInt64BE(pointer(next), (index % POINTERS) * 8);
    await put(next++, bytes);
  }
  for (const { cluster, pointers } of second.values()) await put(cluster, pointers);
  const refcounts = Buffer.alloc(CLUSTER_BYTES);
  for (let cluster = 0; cluster < next; cluster++) refcounts.writeUInt16BE(1, cluster * 2);
  const refcountTable = Buffer.alloc(8);
  refcountTable.writeBigUInt64BE(BigInt(layout.refcountBlock * CLUSTER_BYTES));
  await put(0, header(sizeBytes, tables, layout));
  await put(layout.refcountTable, refcountTable);
  await put(layout.refcountBlock, refcounts.subarray(0, next * 2));
  await put(layout.topTable, top.subarray(0, tables * 8));
  // QEMU expects the last cluster to be complete.
  await file.truncate(next * CLUSTER_BYTES);
}

function pointer(cluster: number): bigint {
  return COPIED | BigInt(cluster * CLUSTER_BYTES);
}

function header(
  sizeBytes: number,
  tables: number,
  { topTable, refcountTable }: { readonly topTable: number; readonly refcountTable: number },
): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES + 8);
  bytes.write("QFI\xfb", 0, "latin1");
  bytes.writeUInt32BE(3, 4);
  bytes.writeUInt32BE(CLUSTER_BITS, 20);
  bytes.writeBigUInt64BE(BigInt(sizeBytes), 24);
  bytes.writeUInt32BE(tables, 36);
  bytes.writeBigUInt64BE(BigInt(topTable * CLUSTER_BYTES), 40);
  bytes.writeBigUInt64BE(BigInt(refcountTable * CLUSTER_BYTES), 48);
  bytes.writeUInt32BE(1, 56);
  // Reference counts have 16 bits.
  bytes.writeUInt32BE(4, 96);
  bytes.writeUInt32BE(HEADER_BYTES, 100);
  return bytes;
}

/** The clusters of a file that hold anything but zeros. */
export async function* filledClusters(path: string): AsyncGenerator<readonly [number, Uint8Array]> {
  const zeros = Buffer.alloc(CLUSTER_BYTES);
  const piece = Buffer.alloc(64 * CLUSTER_BYTES);
  await using file = await open(path);
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(piece, 0, piece.length, position);
    if (bytesRead === 0) return;
    for (let start = 0; start < bytesRead; start += CLUSTER_BYTES) {
      const cluster = piece.subarray(start, start + CLUSTER_BYTES);
      if (!cluster.equals(zeros)) yield [(position + start) / CLUSTER_BYTES, cluster];
    }
    position += bytesRead;
  }
}

/** A disk with an empty filesystem, made once for each size. */
export async function blankDisk(path: string, sizeMib: number): Promise<void> {
  await makeBlankDisk(path, sizeMib, (raw, draft) =>
    writeOverlayDisk(draft, { sizeBytes: sizeMib * 2 ** 20, clusters: filledClusters(raw) }),
  );
}
