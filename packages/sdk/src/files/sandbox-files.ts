import type { FileEntryBody, OperationId } from "@sandpiper/protocol";
import type { CallOptions } from "../call-options.ts";
import type { HttpRequest } from "../http/http-transport.ts";
import type { SandboxLink } from "../sandbox-link.ts";
import { type FileContent, requestContent } from "./file-content.ts";
import { type FileWatcher, type WatchOptions, watchFiles } from "./file-watcher.ts";

export interface ReadOptions extends CallOptions {
  readonly offset?: number | undefined;
  readonly lengthBytes?: number | undefined;
}

/** Permissions and owner of a new file; a replaced file keeps its own by default. */
export interface OwnershipOptions {
  readonly mode?: number | undefined;
  /** A name, "uid" or "uid:gid". */
  readonly owner?: string | undefined;
}

/** The files of a sandbox. Relative paths start at the default user's home directory. */
export class SandboxFiles {
  readonly #link: SandboxLink;

  constructor(link: SandboxLink) {
    this.#link = link;
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array<ArrayBuffer>> {
    return await this.#link.http.bytes("readFile", this.#readRequest(path, options));
  }

  /** Decoded as UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path, options));
  }

  /** Streams the file's bytes, at the reader's pace. */
  async readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return await this.#link.http.stream("readFile", this.#readRequest(path, options));
  }

  /** Replaces the file atomically and creates missing directories; a reader sees the old file or the new one. */
  async write(
    path: string,
    content: FileContent,
    { mode, owner, signal }: CallOptions & OwnershipOptions = {},
  ): Promise<{ readonly sizeBytes: number }> {
    const query = { path, mode: mode?.toString(8), owner };
    return await this.#json("writeFile", { query, ...requestContent(content), signal });
  }

  async list(
    path: string,
    {
      depth,
      signal,
    }: CallOptions & { /** 1, the default: its own entries; 0: no limit. */ readonly depth?: number | undefined } = {},
  ): Promise<readonly FileEntryBody[]> {
    const { items } = await this.#json<{ items: FileEntryBody[] }>("listFiles", { query: { path, depth }, signal });
    return items;
  }

  /** Follows a symbolic link unless `follow` is false. */
  async stat(
    path: string,
    { follow, signal }: CallOptions & { readonly follow?: boolean | undefined } = {},
  ): Promise<FileEntryBody> {
    return await this.#json("statFile", { query: { path, follow }, signal });
  }

  /** Resolves with whether the directory was created. */
  async mkdir(
    path: string,
    { parents, mode, owner, signal }: CallOptions & OwnershipOptions & { readonly parents?: boolean | undefined } = {},
  ): Promise<boolean> {
    const json = { path, parents, mode, owner };
    return (await this.#json<{ created: boolean }>("makeDirectory", { json, signal })).created;
  }

  async move(
    from: string,
    to: string,
    { overwrite, signal }: CallOptions & { readonly overwrite?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#empty("moveFile", { json: { from, to, overwrite }, signal });
  }

  async remove(
    path: string,
    options: CallOptions & { readonly recursive?: boolean | undefined; readonly missingOk?: boolean | undefined } = {},
  ): Promise<void> {
    const { recursive, missingOk, signal } = options;
    await this.#empty("removeFile", {
      query: { path, recursive, missingOk },
      signal,
      isRepeatable: missingOk === true,
    });
  }

  async chmod(
    path: string,
    mode: number,
    { recursive, signal }: CallOptions & { readonly recursive?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#empty("changeMode", { json: { path, mode, recursive }, signal, isRepeatable: true });
  }

  /** Unpacks a tar archive into a directory. */
  async uploadArchive(
    path: string,
    archive: FileContent,
    { signal }: CallOptions = {},
  ): Promise<{ readonly sizeBytes: number }> {
    return await this.#json("writeArchive", { query: { path }, ...requestContent(archive), signal });
  }

  /** Streams a directory as a tar archive, at the reader's pace. */
  async downloadArchive(path: string, { signal }: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return await this.#link.http.stream("readArchive", { path: { id: this.#link.id }, query: { path }, signal });
  }

  /** Resolves when the watch is set and will miss no later change. */
  async watch(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    return await watchFiles(this.#link, path, options);
  }

  #readRequest(path: string, { offset, lengthBytes, signal }: ReadOptions): HttpRequest {
    return { path: { id: this.#link.id }, query: { path, offset, lengthBytes }, signal };
  }

  #json<Answer>(operation: OperationId, request: HttpRequest): Promise<Answer> {
    return this.#link.http.json(operation, { path: { id: this.#link.id }, ...request });
  }

  #empty(operation: OperationId, request: HttpRequest): Promise<void> {
    return this.#link.http.empty(operation, { path: { id: this.#link.id }, ...request });
  }
}
