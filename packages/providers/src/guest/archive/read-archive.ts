import { createReadStream } from "node:fs";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { type Extract, extract } from "tar-stream";
import { findPacking, type Packing } from "./find-packing.ts";

export type ArchiveEntry = Extract extends AsyncIterable<infer Each> ? Each : never;

export interface ReadArchiveOptions {
  /** Of everything in it, however small it was packed. */
  readonly maxBytes: number;
  /** Told how much of the file was read. */
  readonly onRead?: ((bytes: number) => void) | undefined;
}

const UNPACKERS: Readonly<Record<Packing, () => readonly Transform[]>> = {
  none: () => [],
  gzip: () => [createGunzip()],
  zstd: () => [createZstdDecompress()],
};
/** The entries of a tar archive in their order, each of which must be read or resumed before the next comes. */
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

/** Passes everything on, up to a limit. */
function counting(maxBytes: number, tell: (bytes: number) => void = () => {}): Transform {
  let bytes = 0;
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      bytes += chunk.length;
      tell(bytes);
      if (bytes > maxBytes) done(new Error(`there is more in it than ${maxBytes} bytes`));
      else done(null, chunk);
    },
  });
}
