import { hash } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** The first byte of a stored chunk. */
const RAW = 0;
const ZSTD = 1;

const FASTEST = { [constants.ZSTD_c_compressionLevel]: 1 };
/** zlib takes no less. */
const MIN_ROOM_BYTES = 64;
const MIN_SAVING = 0.95;

const SAMPLES = 1024;
/** Of 1024 random bytes, about 1,000 pairs are the same; text, code and tables have many more. */
const RANDOM_PAIRS = 1.25;

export function hashOf(content: Uint8Array): string {
  return hash("sha256", content, "hex");
}

/** As it is stored: one byte that says how, and the content, smaller where that helps. */
export async function encodeChunk(content: Uint8Array): Promise<readonly Uint8Array[]> {
  if (!looksRandom(content)) {
    // Room for all of it at once: with the default, each 16 KiB are a turn of their own.
    const packed = await compress(content, { params: FASTEST, chunkSize: Math.max(content.length, MIN_ROOM_BYTES) });
    if (packed.length < content.length * MIN_SAVING) return [Uint8Array.of(ZSTD), packed];
  }
  return [Uint8Array.of(RAW), content];
}

/** Undefined: this was not made from content with this size and hash. */
export async function decodeChunk(stored: Uint8Array, size: number, expected: string): Promise<Uint8Array | undefined> {
  const content = await unpack(stored, size);
  return content?.length === size && hashOf(content) === expected ? content : undefined;
}

async function unpack(stored: Uint8Array, size: number): Promise<Uint8Array | undefined> {
  const body = stored.subarray(1);
  if (stored[0] === RAW) return body;
  if (stored[0] !== ZSTD) return undefined;
  return decompress(body, { maxOutputLength: size, chunkSize: Math.max(size, MIN_ROOM_BYTES) }).catch(() => undefined);
}

/** What is compressed or encrypted already costs much time and gives nothing; a sample tells. */
function looksRandom(content: Uint8Array): boolean {
  if (content.length < SAMPLES) return false;
  const step = Math.floor(content.length / SAMPLES);
  const counts = new Uint16Array(256);
  for (let index = 0; index < SAMPLES; index += 1) {
    // Uneven steps, because much data repeats every so many bytes.
    const at = index * step + ((index * 7) % step || 0);
    const byte = content[at] ?? 0;
    counts[byte] = (counts[byte] ?? 0) + 1;
  }
  let pairs = 0;
  for (const count of counts) pairs += count * (count - 1);
  return pairs < (RANDOM_PAIRS * SAMPLES * (SAMPLES - 1)) / 256;
}
