import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";

/** Short digests of files, computed again only when a file has changed. */
export class FileDigests {
  readonly #known = new Map<string, { readonly version: string; readonly digest: Promise<string> }>();

  /** Empty for a missing file. */
  async of(path: string): Promise<string> {
    const info = await stat(path).catch(() => undefined);
    if (info === undefined) return "";
    const version = `${info.ino} ${info.size} ${info.mtimeMs}`;
    const known = this.#known.get(path);
    if (known?.version === version) return known.digest;
    const digest = readFile(path).then((bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16));
    this.#known.set(path, { version, digest });
    return digest;
  }
}
