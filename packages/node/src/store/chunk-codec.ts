import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** How a stored chunk is packed. */
const RAW = 0;
const ZSTD = 1;

const FASTEST = { [constants.ZSTD_c_compressionLevel]: 1 };
/** A window of 2 MiB, more than a chunk needs. By default the bytes themselves can demand 128 MiB. */
const MAX_WINDOW_LOG = 21;
/** The smallest output buffer that zlib accepts. */
const MIN_OUTPUT_BYTES = 64;
/** A chunk is stored compressed if that makes it at least 5 % smaller. */
const MAX_COMPRESSED_RATIO = 0.95;

const SAMPLES = 1024;
/** A sample with up to 1.25 times as many pairs of equal bytes as random data counts as random. Text, code and tables have many more. */
const RANDOM_PAIRS = 1.25;

export interface PackedChunk {
  readonly kind: number;
  readonly packed: Uint8Array;
}

/** Compresses the content if that saves space. */
export async function packChunk(content: Uint8Array): Promise<PackedChunk> {
  if (!looksRandom(content)) {
    // One output buffer for everything: with the default, zlib returns to the event loop after every 16 KiB.
    const packed = await compress(content, { params: FASTEST, chunkSize: Math.max(content.length, MIN_OUTPUT_BYTES) });
    if (packed.length < content.length * MAX_COMPRESSED_RATIO) return { kind: ZSTD, packed };
  }
  return { kind: RAW, packed: content };
}

/** Undefined if the bytes do not decode. The result has at most `size` bytes if they were compressed. */
export async function unpackChunk(packed: Uint8Array, kind: number, size: number): Promise<Uint8Array | undefined> {
  if (kind === RAW) return packed;
  if (kind !== ZSTD) return undefined;
  const params = { [constants.ZSTD_d_windowLogMax]: MAX_WINDOW_LOG };
  const options = { params, maxOutputLength: size, chunkSize: Math.max(size, MIN_OUTPUT_BYTES) };
  return decompress(packed, options).catch(() => undefined);
}

/** Recognizes compressed or encrypted content by a sample: compressing it again takes long and saves nothing. */
function looksRandom(content: Uint8Array): boolean {
  if (content.length < SAMPLES) return false;
  const step = Math.floor(content.length / SAMPLES);
  const counts = new Uint16Array(256);
  for (let index = 0; index < SAMPLES; index += 1) {
    // The steps are uneven because much data repeats at a fixed interval.
    const at = index * step + ((index * 7) % step || 0);
    const byte = content[at] ?? 0;
    counts[byte] = (counts[byte] ?? 0) + 1;
  }
  let pairs = 0;
  for (const count of counts) pairs += count * (count - 1);
  return pairs < (RANDOM_PAIRS * SAMPLES * (SAMPLES - 1)) / 256;
}
