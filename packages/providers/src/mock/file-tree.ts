import { SandboxError } from "@sandpiper/core";
import type { FileInfo } from "@sandpiper/protocol";

interface Node {
  readonly kind: "file" | "directory";
  bytes: Uint8Array;
  mode: number;
  modifiedAtMs: number;
}

export interface TreeEvent {
  readonly kind: "create" | "write" | "remove" | "rename" | "chmod";
  readonly path: string;
  readonly to?: string;
}

export type SavedFiles = ReadonlyMap<string, Node>;

export const HOME = "/home/user";

/** Files in memory, by absolute path. */
export class FileTree {
  readonly listeners = new Set<(event: TreeEvent) => void>();
  readonly #nodes: Map<string, Node>;
  readonly #nowMs: () => number;

  constructor(nowMs: () => number, saved: SavedFiles = new Map()) {
    this.#nowMs = nowMs;
    this.#nodes = new Map(saved);
    if (saved.size > 0) return;
    for (const path of ["/", "/tmp", "/home", HOME]) this.#nodes.set(path, this.#node("directory", 0o755));
  }

  save(): SavedFiles {
    return this.#nodes;
  }

  /** Relative paths start at the home directory, or at a command's working directory. */
  resolve(path: string, from = HOME): string {
    const parts: string[] = [];
    for (const part of (path.startsWith("/") ? path : `${from}/${path}`).split("/")) {
      if (part === "..") parts.pop();
      else if (part !== "" && part !== ".") parts.push(part);
    }
    return `/${parts.join("/")}`;
  }

  has(path: string): boolean {
    return this.#nodes.has(path);
  }

  isDirectory(path: string): boolean {
    return this.#nodes.get(path)?.kind === "directory";
  }

  stat(path: string): FileInfo {
    return this.#describe(path, this.#get(path));
  }

  read(path: string): Uint8Array {
    const node = this.#get(path);
    if (node.kind === "file") return node.bytes;
    throw new SandboxError("is_a_directory", { message: `${path} is a directory` });
  }

  write(path: string, bytes: Uint8Array, mode?: number): void {
    this.mkdir(parentOf(path), true);
    const old = this.#nodes.get(path);
    if (old?.kind === "directory") this.read(path);
    const node = this.#node("file", mode ?? old?.mode ?? 0o644);
    node.bytes = bytes;
    this.#nodes.set(path, node);
    this.#tell({ kind: old === undefined ? "create" : "write", path });
  }

  append(path: string, bytes: Uint8Array): void {
    this.write(path, this.has(path) ? Buffer.concat([this.read(path), bytes]) : bytes);
  }

  mkdir(path: string, parents: boolean, mode = 0o755): boolean {
    if (this.isDirectory(path)) return false;
    if (this.#nodes.has(path)) throw alreadyExists(path);
    if (parents) this.mkdir(parentOf(path), true);
    else this.#get(parentOf(path));
    this.#nodes.set(path, this.#node("directory", mode));
    this.#tell({ kind: "create", path });
    return true;
  }

  move(from: string, to: string, overwrite: boolean): void {
    this.#get(from);
    if (this.#nodes.has(to) && !overwrite) throw alreadyExists(to);
    for (const path of [from, ...this.#below(from)]) {
      this.#nodes.set(to + path.slice(from.length), this.#get(path));
      this.#nodes.delete(path);
    }
    this.#tell({ kind: "rename", path: from, to });
  }

  remove(path: string, options: { readonly recursive: boolean; readonly missingOk: boolean }): void {
    if (!this.#nodes.has(path) && options.missingOk) return;
    this.#get(path);
    const below = this.#below(path);
    if (below.length > 0 && !options.recursive) {
      const message = `${path} is not empty`;
      throw new SandboxError("directory_not_empty", { message });
    }
    for (const each of [path, ...below]) this.#nodes.delete(each);
    this.#tell({ kind: "remove", path });
  }

  chmod(path: string, mode: number): void {
    this.#get(path).mode = mode;
    this.#tell({ kind: "chmod", path });
  }

  /** Sorted by path, relative to the directory. */
  list(path: string, depth: number): FileInfo[] {
    if (this.#get(path).kind !== "directory") {
      throw new SandboxError("not_a_directory", { message: `${path} is not a directory` });
    }
    const prefix = path === "/" ? "/" : `${path}/`;
    const infos = this.#below(path).map((each) => this.#describe(each.slice(prefix.length), this.#get(each)));
    return infos.filter((info) => depth === 0 || info.path.split("/").length <= depth);
  }

  #below(path: string): string[] {
    const prefix = path === "/" ? "/" : `${path}/`;
    return [...this.#nodes.keys()].filter((each) => each.startsWith(prefix) && each !== path).sort();
  }

  #get(path: string): Node {
    const node = this.#nodes.get(path);
    if (node === undefined) {
      throw new SandboxError("no_such_file", { message: `${path} does not exist` });
    }
    return node;
  }

  #node(kind: Node["kind"], mode: number): Node {
    return { kind, bytes: new Uint8Array(0), mode, modifiedAtMs: this.#nowMs() };
  }

  #describe(path: string, { kind, bytes, mode, modifiedAtMs }: Node): FileInfo {
    return { path, kind, size: bytes.length, mode, uid: 1000, gid: 1000, modified_at_ms: modifiedAtMs };
  }

  #tell(event: TreeEvent): void {
    for (const listener of this.listeners) listener(event);
  }
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

function alreadyExists(path: string): SandboxError {
  return new SandboxError("file_exists", { message: `${path} already exists` });
}
