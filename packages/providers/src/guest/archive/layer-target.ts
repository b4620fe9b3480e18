import { constants } from "node:fs";
import { chmod, lchown, link, mkdir, open, rm, symlink } from "node:fs/promises";
import { join, posix } from "node:path";
import type { ArchiveEntry } from "./read-archive.ts";

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
const MAX_NAME_BYTES = 255;
const MAX_PATH_BYTES = 4095;
const MAX_ID = 0xffff_fffe;
const MODE_BITS = 0o7777;

export interface UnpackLimits {
  /** For all files of all layers together. */
  readonly maxBytes: number;
  readonly maxEntries: number;
}

interface Node {
  readonly kind: "directory" | "file" | "symlink";
  /** The newest layer that contains it. */
  readonly layer: number;
}

/**
 * A directory into which layers are unpacked on top of each other. The names in an image are untrusted. This class records what it
 * wrote at each path and never writes through a link, so nothing outside the directory changes.
 */
export class LayerTarget {
  readonly #root: string;
  readonly #limits: UnpackLimits;
  readonly #nodes = new Map<string, Node>();
  #entries = 0;
  #bytes = 0;

  constructor(root: string, limits: UnpackLimits) {
    this.#root = root;
    this.#limits = limits;
  }

  /** Call layer by layer, the lowest first. */
  async add(entry: ArchiveEntry, layer: number): Promise<void> {
    const { name, type, size = 0 } = entry.header;
    const { maxEntries, maxBytes } = this.#limits;
    this.#entries += 1;
    this.#bytes += size;
    if (this.#entries > maxEntries) throw new Error(`it contains more than ${maxEntries} files`);
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
    this.#nodes.set(path, { kind: "file", layer });
  }

  async #symlink({ header }: ArchiveEntry, path: string, layer: number): Promise<void> {
    const target = header.linkname ?? "";
    if (target === "" || target.includes("\0") || Buffer.byteLength(target) > MAX_PATH_BYTES) {
      throw new Error(`the target of link ${shown(path)} is invalid`);
    }
    await this.#clear(path, layer);
    await symlink(target, this.#at(path));
    await lchown(this.#at(path), idOf(header.uid), idOf(header.gid));
    this.#nodes.set(path, { kind: "symlink", layer });
  }

  /** Links only to a regular file: a symlink would be followed. */
  async #link({ header }: ArchiveEntry, path: string, layer: number): Promise<void> {
    const target = safePath(header.linkname ?? "");
    if (this.#nodes.get(target)?.kind !== "file") {
      throw new Error(`${shown(path)} is a link to ${shown(target)}, which is not a file of the archive`);
    }
    if (path === target) return;
    await this.#clear(path, layer);
    await link(this.#at(target), this.#at(path));
    this.#nodes.set(path, { kind: "file", layer });
  }

  /** Removes the files of lower layers, and keeps those of this layer. */
  async #hide(path: string, base: string, layer: number): Promise<void> {
    const parent = parentOf(path);
    if (base === OPAQUE) return await this.#removeBelow(parent, layer);
    const hidden = safePath(posix.join(parent, base.slice(WHITEOUT.length)));
    if (parentOf(hidden) !== parent || hidden === "") throw new Error(`whiteout ${shown(path)} is invalid`);
    await this.#removeBelow(hidden, layer);
    const node = this.#nodes.get(hidden);
    if (node !== undefined && node.layer < layer && !this.#hasChildren(hidden)) await this.#remove(hidden);
  }

  async #removeBelow(directory: string, layer: number): Promise<void> {
    // Children first.
    for (const path of this.#below(directory).reverse()) {
      const node = this.#nodes.get(path);
      if (node !== undefined && node.layer < layer && !this.#hasChildren(path)) await this.#remove(path);
    }
  }

  async #makeDirectory(path: string, layer: number): Promise<void> {
    if (this.#nodes.get(path)?.kind !== "directory") {
      await this.#clear(path, layer);
      await mkdir(this.#at(path), { mode: 0o755 });
    }
    this.#nodes.set(path, { kind: "directory", layer });
  }

  /** Removes what is at a path, and creates its parent directories. */
  async #clear(path: string, layer: number): Promise<void> {
    const parent = parentOf(path);
    if (parent !== "" && this.#nodes.get(parent)?.kind !== "directory") await this.#makeDirectory(parent, layer);
    const node = this.#nodes.get(path);
    if (node === undefined) return;
    if (node.kind === "directory") for (const below of this.#below(path)) this.#nodes.delete(below);
    await this.#remove(path);
  }

  async #remove(path: string): Promise<void> {
    await rm(this.#at(path), { recursive: true });
    this.#nodes.delete(path);
  }

  #hasChildren(path: string): boolean {
    return this.#nodes.get(path)?.kind === "directory" && this.#below(path).length > 0;
  }

  /** All paths below a directory, parents first. */
  #below(path: string): string[] {
    const prefix = path === "" ? "" : `${path}/`;
    return [...this.#nodes.keys()].filter((each) => each.startsWith(prefix) && each !== path).sort();
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

function parentOf(path: string): string {
  const parent = posix.dirname(path);
  return parent === "." ? "" : parent;
}

function idOf(id: number | undefined): number {
  if (id !== undefined && (!Number.isInteger(id) || id < 0 || id > MAX_ID))
    throw new Error(`it contains a file with the invalid owner ${id}`);
  return id ?? 0;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
