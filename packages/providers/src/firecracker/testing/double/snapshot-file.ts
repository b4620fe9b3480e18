import { spawnSync } from "node:child_process";
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

const HEADER_BYTES = 4096;

interface MemoryFile {
  readonly memoryMib: number;
  /** Without it, every block is allocated. */
  readonly isSparse: boolean;
}

/** Writes a directory as one file that is at least as large as a guest's memory. */
export function packMemory(directory: string, path: string, { memoryMib, isSparse }: MemoryFile): void {
  const files = readdirSync(directory).map((name) => ({ name, bytes: readFileSync(join(directory, name)) }));
  const header = JSON.stringify(files.map(({ name, bytes }) => ({ name, size: bytes.length })));
  const descriptor = openSync(path, "w", 0o644);
  writeSync(descriptor, Buffer.from(header.padEnd(HEADER_BYTES)), 0, HEADER_BYTES, 0);
  let position = HEADER_BYTES;
  for (const { bytes } of files) position += writeSync(descriptor, bytes, 0, bytes.length, position);
  const size = Math.max(position, memoryMib * 2 ** 20);
  ftruncateSync(descriptor, size);
  closeSync(descriptor);
  if (isSparse) return;
  const { status } = spawnSync("fallocate", ["--length", String(size), path]);
  if (status !== 0) throw new Error(`fallocate of ${path} failed`);
}

/** Throws when the file has another format. */
export function unpackMemory(path: string, directory: string): void {
  const descriptor = openSync(path, "r");
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
    mkdirSync(directory, { recursive: true });
    let position = HEADER_BYTES;
    for (const { name, size } of JSON.parse(header.toString())) {
      const bytes = Buffer.alloc(size);
      position += readSync(descriptor, bytes, 0, size, position);
      writeFileSync(join(directory, name), bytes);
    }
  } finally {
    closeSync(descriptor);
  }
}
