import { type FileHandle, open } from "node:fs/promises";
import { parseImageReference } from "../../host/image-reference.ts";
import { sharedByKey } from "../../host/shared.ts";

const BLOCK_BYTES = 512;
const MAX_MANIFEST_BYTES = 1024 * 1024;

/** The image archives that every machine loads at its start. */
export class SavedArchives {
  readonly #paths: readonly string[];
  readonly #namesIn = sharedByKey(readNames);

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** Whether a machine may get the image from an archive; the content of a compressed one is not known. */
  async mayContain(reference: string): Promise<boolean> {
    const wanted = normalName(reference);
    const names = await Promise.all(this.#paths.map((path) => this.#namesIn(path)));
    return names.some((known) => known === undefined || known.includes(wanted));
  }
}

/** Equal for all ways to write a reference. */
function normalName(reference: string): string {
  const { name, tag } = parseImageReference(reference);
  return `${name.replace(/^docker\.io\//, "").replace(/^library\//, "")}:${tag}`;
}

/** The names of an archive's images, from the manifest that `docker save` writes; undefined if it cannot be read. */
async function readNames(path: string): Promise<readonly string[] | undefined> {
  try {
    await using file = await open(path);
    const manifest = await readEntry(file, "manifest.json");
    if (manifest === undefined) return undefined;
    const images = JSON.parse(manifest) as readonly { readonly RepoTags?: readonly string[] | null }[];
    return images.flatMap(({ RepoTags }) => (RepoTags ?? []).map(normalName));
  } catch {
    return undefined;
  }
}

/** Skips the content of the other entries, because archives are large. */
async function readEntry(file: FileHandle, wanted: string): Promise<string | undefined> {
  const header = Buffer.alloc(BLOCK_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read(header, 0, BLOCK_BYTES, position);
    if (bytesRead < BLOCK_BYTES || header.toString("latin1", 257, 262) !== "ustar") return undefined;
    const name = header.toString("utf8", 0, 100).replace(/\0.*$/s, "");
    const size = entrySize(header);
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    position += BLOCK_BYTES;
    if (name === wanted && size <= MAX_MANIFEST_BYTES) {
      const { buffer } = await file.read(Buffer.alloc(size), 0, size, position);
      return buffer.toString();
    }
    position += Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
}

/** Octal digits, or for a large file a binary number with the highest bit set. */
function entrySize(header: Buffer): number {
  if (((header[124] ?? 0) & 0x80) === 0) return Number.parseInt(header.toString("latin1", 124, 136), 8) || 0;
  return Number(header.readBigUInt64BE(128));
}
