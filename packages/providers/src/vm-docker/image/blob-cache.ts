import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { publishFile } from "../../host/publish-file.ts";
import type { Descriptor } from "./image-manifest.ts";
import { damaged } from "./registry-error.ts";

export interface BlobDownload {
  readonly reference: string;
  readonly fetch: () => Promise<Response>;
  readonly signal: AbortSignal;
  readonly onBytes: (doneBytes: number) => void;
}

/** Parts of images on this host, each a file that is named for its digest. */
export class BlobCache {
  readonly #directory: string;
  readonly #maxBytes: number;

  constructor(directory: string, maxBytes: number) {
    this.#directory = directory;
    this.#maxBytes = maxBytes;
  }

  path({ digest }: Descriptor): string {
    return join(this.#directory, digest.slice("sha256:".length));
  }

  /** Marks the blob as used, which keeps it from being evicted soon. */
  async has(blob: Descriptor): Promise<boolean> {
    const now = new Date();
    return await utimes(this.path(blob), now, now).then(
      () => true,
      () => false,
    );
  }

  /** Keeps the blob only if its size and digest are right. */
  async download(blob: Descriptor, { reference, fetch, signal, onBytes }: BlobDownload): Promise<void> {
    const answer = await fetch();
    await publishFile(this.path(blob), async (draft) => {
      const hash = createHash("sha256");
      let size = 0;
      const check = new Transform({
        transform(piece: Buffer, _encoding, done) {
          size += piece.length;
          hash.update(piece);
          onBytes(size);
          done(size > blob.size ? damaged(reference, `more than ${blob.size} bytes for ${blob.digest}`) : null, piece);
        },
      });
      const body = Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]);
      await pipeline(body, check, createWriteStream(draft, { flags: "wx", mode: 0o600 }), { signal });
      if (`sha256:${hash.digest("hex")}` !== blob.digest) throw damaged(reference, `other content than ${blob.digest}`);
    });
  }

  /** Removes the least recently used blobs beyond the limit, except those of the image in use. */
  async evict(used: readonly Descriptor[]): Promise<void> {
    const kept = new Set(used.map((blob) => this.path(blob)));
    const names = await readdir(this.#directory).catch(() => []);
    const found = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#directory, name);
        const info = await stat(path).catch(() => undefined);
        return { path, sizeBytes: info?.size ?? 0, usedAtMs: info?.mtimeMs ?? 0 };
      }),
    );
    let totalBytes = found.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    // Drafts of downloads have other names.
    const blobs = found.filter(({ path }) => /\/[0-9a-f]{64}$/.test(path) && !kept.has(path));
    for (const { path, sizeBytes } of blobs.sort((one, other) => one.usedAtMs - other.usedAtMs)) {
      if (totalBytes <= this.#maxBytes) return;
      await rm(path, { force: true });
      totalBytes -= sizeBytes;
    }
  }
}
