import { constants } from "node:fs";
import { chmod, lchown, link, mkdir, open, rm, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import { LayerTree, parentOf } from "./layer-tree.ts";
import type { ArchiveEntry } from "./read-archive.ts";

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
const MAX_NAME_BYTES = 255;
const MAX_PATH_BYTES = 4095;
const MAX_ID = 0xffff_fffe;
const MODE_BITS = 0o7777;
/** This class remembers all names. A million files of a real image have a third of this. */
const MAX_NAMES_BYTES = 256 * 2 ** 20;

export interface UnpackLimits {
  /** For all files of all layers together. */
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/**
 * A directory into which layers are unpacked on top of each other. The names in an image are untrusted. This class records what it
 * wrote at each path and never writes through a link, so nothing outside the directory changes.
 */
export class LayerTarget {
  readonly #root: string;
  readonly #limits: UnpackLimits;
  readonly #tree = new LayerTree();
  #entries = 0;
  #bytes = 0;
  #namesBytes = 0;

  constructor(root: string, limits: UnpackLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  /** Call layer by layer, the lowest first. */
  async add(entry: ArchiveEntry, layer: number): Promise<void> {
    const { name, type, size = 0 } = entry.header;
    const { maxBytes } = this.#limits;
    this.#bytes += size;
    this.#count(name);
    if (this.#bytes > maxBytes) throw new Error(`it contains more than ${maxBytes} bytes`);
    const path = safePath(name);
    const base = posix.basename(path);
    if (path !== "" && base.startsWith(WHITEOUT)) await this.#hide(path, base, layer);
    else if (type === "directory") await this.#directory(entry, path, layer);
    else if (path === "") throw new Error("it contains a file without a name");
    else if (type === "file" || type === "contiguous-file") await this.#file(entry, path, layer);
    else if (type === "symlink") await this.#symlink(entry, path, layer);
    else if (type === "link") await this.#link(entry, path, layer);
    // The guest creates its own devices.
    entry.resume();
  }

  #count(name: string): void {
    const { maxEntries } = this.#limits;
    this.#entries += 1;
    this.#namesBytes += Buffer.byteLength(name);
    if (this.#entries > maxEntries) throw new Error(`it contains more than ${maxEntries} files`);
    if (this.#namesBytes > MAX_NAMES_BYTES) throw new Error(`its names have more than ${MAX_NAMES_BYTES} bytes`);
  }

  async #directory({ header }: ArchiveEntry, path: string, layer: number): Promise<void> {
    if (path !== "") await this.#makeDirectory(path, layer);
    await lchown(this.#at(path), idOf(header.uid), idOf(header.gid));
    await chmod(this.#at(path), (header.mode ?? 0o755) & MODE_BITS);
  }

  async #file(entry: ArchiveEntry, path: string, layer: number): Promise<void> {
    const { mode = 0o644, uid, gid, mtime } = entry.header;
    await this.#clear(path, layer);
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    await using file = await open(this.#at(path), flags, 0o600);
    for await (const chunk of entry as AsyncIterable<Uint8Array>) await file.writeFile(chunk);
    await file.chown(idOf(uid), idOf(gid));
    await file.chmod(mode & MODE_BITS);
    // Compiled caches are often valid only for a source with the same time.
    if (mtime !== undefined) await file.utimes(mtime, mtime);
    this.#tree.set(path, "file", layer);
  }

  async #symlink({ header }: ArchiveEntry, path: string, layer: number): Promise<void> {
    const target = header.linkname ?? "";
    if (target === "" || target.includes("\0") || Buffer.byteLength(target) > MAX_PATH_BYTES) {
      throw new Error(`the target of link ${shown(path)} is invalid`);
    }
    await this.#clear(path, layer);
    await symlink(target, this.#at(path));
    await lchown(this.#at(path), idOf(header.uid), idOf(header.gid));
    this.#tree.set(path, "symlink", layer);
  }

  /** Links only to a regular file: a symlink would be followed. */
  async #link({ header }: ArchiveEntry, path: string, layer: number): Promise<void> {
    const target = safePath(header.linkname ?? "");
    if (this.#tree.kindOf(target) !== "file") {
      throw new Error(`${shown(path)} is a link to ${shown(target)}, which is not a file of the archive`);
    }
    if (path === target) return;
    await this.#clear(path, layer);
    await link(this.#at(target), this.#at(path));
    this.#tree.set(path, "file", layer);
  }

  /** Removes the files of lower layers, and keeps those of this layer. */
  async #hide(path: string, base: string, layer: number): Promise<void> {
    const parent = parentOf(path);
    if (base === OPAQUE) return await this.#removeBelow(parent, layer);
    const hidden = safePath(posix.join(parent, base.slice(WHITEOUT.length)));
    if (parentOf(hidden) !== parent || hidden === "") throw new Error(`whiteout ${shown(path)} is invalid`);
    await this.#removeBelow(hidden, layer);
    if (this.#tree.isHidden(hidden, layer)) await this.#remove(hidden);
  }

  async #removeBelow(directory: string, layer: number): Promise<void> {
    for (const path of this.#tree.hidden(directory, layer)) await this.#remove(path);
  }

  async #makeDirectory(path: string, layer: number): Promise<void> {
    if (this.#tree.kindOf(path) !== "directory") {
      await this.#clear(path, layer);
      await mkdir(this.#at(path), { mode: 0o755 });
    }
    this.#tree.set(path, "directory", layer);
  }

  /** Removes what is at a path, and creates its parent directories. */
  async #clear(path: string, layer: number): Promise<void> {
    const parent = parentOf(path);
    if (parent !== "" && this.#tree.kindOf(parent) !== "directory") {
      // A directory that the archive does not list costs as much as one that it lists.
      this.#count(posix.basename(parent));
      await this.#makeDirectory(parent, layer);
    }
    if (this.#tree.kindOf(path) !== undefined) await this.#remove(path);
  }

  async #remove(path: string): Promise<void> {
    await rm(this.#at(path), { recursive: true });
    this.#tree.remove(path);
  }

  #at(path: string): string {
    return join(this.#root, path);
  }
}

/** A relative path without dots and double slashes; empty for the root. */
function safePath(name: string): string {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  const isLong =
    Buffer.byteLength(name) > MAX_PATH_BYTES || parts.some((part) => Buffer.byteLength(part) > MAX_NAME_BYTES);
  if (parts.includes("..") || name.includes("\0") || isLong)
    throw new Error(`it contains a file with the invalid name ${shown(name)}`);
  return parts.join("/");
}

function idOf(id: number | undefined): number {
  if (id !== undefined && (!Number.isInteger(id) || id < 0 || id > MAX_ID))
    throw new Error(`it contains a file with the invalid owner ${id}`);
  return id ?? 0;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
