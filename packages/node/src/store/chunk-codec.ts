import { hash } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** The first byte of a stored chunk. */
const RAW = 0;
const ZSTD = 1;

const FASTEST = { [constants.ZSTD_c_compressionLevel]: 1 };
/** The smallest output buffer that zlib accepts. */
const MIN_OUTPUT_BYTES = 64;
/** A chunk is stored compressed if that makes it at least 5 % smaller. */
const MAX_COMPRESSED_RATIO = 0.95;

const SAMPLES = 1024;
/** A sample with up to 1.25 times as many pairs of equal bytes as random data counts as random. Text, code and tables have many more. */
const RANDOM_PAIRS = 1.25;

export function hashOf(content: Uint8Array): string {
  return hash("sha256", content, "hex");
}

/** The stored form: one byte for the format, then the content, compressed if that saves space. */
export async function encodeChunk(content: Uint8Array): Promise<readonly Uint8Array[]> {
  if (!looksRandom(content)) {
    // One output buffer for everything: with the default, zlib returns to the event loop after every 16 KiB.
    const packed = await compress(content, { params: FASTEST, chunkSize: Math.max(content.length, MIN_OUTPUT_BYTES) });
    if (packed.length < content.length * MAX_COMPRESSED_RATIO) return [Uint8Array.of(ZSTD), packed];
  }
  return [Uint8Array.of(RAW), content];
}

/** Undefined if the stored bytes do not decode to content with this size and hash. */
export async function decodeChunk(stored: Uint8Array, size: number, expected: string): Promise<Uint8Array | undefined> {
  const content = await unpack(stored, size);
  return content?.length === size && hashOf(content) === expected ? content : undefined;
}

async function unpack(stored: Uint8Array, size: number): Promise<Uint8Array | undefined> {
  const body = stored.subarray(1);
  if (stored[0] === RAW) return body;
  if (stored[0] !== ZSTD) return undefined;
  const options = { maxOutputLength: size, chunkSize: Math.max(size, MIN_OUTPUT_BYTES) };
  return decompress(body, options).catch(() => undefined);
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
