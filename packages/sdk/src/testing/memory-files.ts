import { type FileEntryBody, type FileEventBody, SandboxError } from "@sandpiper/protocol";

type Files = Map<string, Uint8Array<ArrayBuffer>>;

/** Files are a map of paths; a directory exists while it has entries. */
export class MemoryFiles {
  readonly #files: Files;
  readonly #changed: (kind: FileEventBody["kind"], path: string) => void;

  constructor(files: Files, changed: (kind: FileEventBody["kind"], path: string) => void) {
    this.#files = files;
    this.#changed = changed;
  }

  read(given: string): Uint8Array<ArrayBuffer> {
    const path = absolute(given);
    const bytes = this.#files.get(path);
    if (bytes === undefined) throw missing(path);
    return bytes;
  }

  write(given: string, bytes: Uint8Array<ArrayBuffer>): void {
    const path = absolute(given);
    const kind = this.#files.has(path) ? "write" : "create";
    this.#files.set(path, bytes);
    this.#changed(kind, path);
  }

  stat(given: string): FileEntryBody {
    const path = absolute(given);
    const bytes = this.#files.get(path);
    if (bytes === undefined && this.#below(path).length === 0 && path !== "/") throw missing(path);
    return entry(path, bytes);
  }

  /** The directory's own entries. */
  list(given: string): FileEntryBody[] {
    const path = absolute(given);
    this.stat(path);
    const prefix = path === "/" ? "/" : `${path}/`;
    const names = this.#below(path).map((file) => file.slice(prefix.length).split("/")[0] as string);
    return [...new Set(names)].sort().map((name) => entry(name, this.#files.get(`${prefix}${name}`)));
  }

  move(from: string, to: string): void {
    const bytes = this.read(from);
    this.#files.delete(absolute(from));
    this.#files.set(absolute(to), bytes);
    this.#changed("remove", absolute(from));
    this.#changed("create", absolute(to));
  }

  remove(given: string, { recursive, missingOk }: { readonly recursive: boolean; readonly missingOk: boolean }): void {
    const path = absolute(given);
    const below = this.#below(path);
    if (!this.#files.has(path) && below.length === 0 && !missingOk) throw missing(path);
    if (below.length > 0 && !recursive) {
      throw new SandboxError("directory_not_empty", { message: `${path} is not empty` });
    }
    for (const file of [path, ...below]) if (this.#files.delete(file)) this.#changed("remove", file);
  }

  #below(path: string): string[] {
    const prefix = path === "/" ? "/" : `${path}/`;
    return [...this.#files.keys()].filter((file) => file.startsWith(prefix));
  }
}

/** Relative paths start at the user's home. */
function absolute(path: string): string {
  const parts: string[] = [];
  for (const part of (path.startsWith("/") ? path : `/home/user/${path}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

function entry(path: string, bytes: Uint8Array | undefined): FileEntryBody {
  return {
    path,
    kind: bytes === undefined ? "directory" : "file",
    sizeBytes: bytes?.length ?? 0,
    mode: bytes === undefined ? 0o755 : 0o644,
    uid: 1000,
    gid: 1000,
    modifiedAt: new Date(0).toISOString(),
    target: null,
  };
}

function missing(path: string): SandboxError {
  return new SandboxError("no_such_file", { message: `file ${path} not found` });
}
