import { createReadStream } from "node:fs";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { type Extract, extract } from "tar-stream";
import { findPacking, type Packing } from "./find-packing.ts";

export type ArchiveEntry = Extract extends AsyncIterable<infer Each> ? Each : never;

export interface ReadArchiveOptions {
  /** The limit on the uncompressed size. */
  readonly maxBytes: number;
  /** Called with the number of bytes read from the file. */
  readonly onRead?: ((bytes: number) => void) | undefined;
}

const UNPACKERS: Readonly<Record<Packing, () => readonly Transform[]>> = {
  none: () => [],
  gzip: () => [createGunzip()],
  zstd: () => [createZstdDecompress()],
};

/** The entries of a tar archive in order; read or resume each one before the next. */
export async function* readArchive(path: string, options: ReadArchiveOptions): AsyncGenerator<ArchiveEntry> {
  const { maxBytes, onRead } = options;
  const packing = await findPacking(path);
  const counted = counting(Number.POSITIVE_INFINITY, onRead);
  const limited = counting(maxBytes);
  const reader = extract();
  const stages = [createReadStream(path), counted, ...UNPACKERS[packing ?? "none"](), limited, reader];
  let flaw: unknown;
  const fed = pipeline(stages as unknown as [NodeJS.ReadableStream, NodeJS.WritableStream]).catch((error: unknown) => {
    flaw = error;
  });
  try {
    yield* reader;
  } catch (error) {
    throw flaw ?? error;
  } finally {
    reader.destroy();
    await fed;
  }
  if (flaw !== undefined) throw flaw;
}

/** Passes data through, and fails above a limit. */
function counting(maxBytes: number, onBytes: (bytes: number) => void = () => {}): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      onBytes(bytes);
      if (bytes > maxBytes) done(new Error(`it contains more than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
}
