import {
  type AgentMethod,
  type AgentParams,
  type AgentResult,
  fileInfoSchema,
  MAX_ATTACHMENT_BYTES,
} from "@sandpiper/protocol";
import type { AgentClient } from "../agent/agent-client.ts";
import { download } from "../agent/download.ts";
import { jsonLines } from "../agent/json-lines.ts";
import { type ByteSource, type UploadOptions, uploadFile } from "../agent/upload.ts";
import { type FileEntry, fileEntry } from "./file-entry.ts";
import { type FileWatcher, type WatchOptions, watchFiles } from "./file-watcher.ts";

/** Each grant of credit wakes the agent, so a file is read with few of them. */
const READ_WINDOW_BYTES = 8 * 1024 * 1024;

export interface FileOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ReadOptions extends FileOptions {
  readonly offset?: number | undefined;
  readonly lengthBytes?: number | undefined;
  /**
   * Reuse memory, which is about twice as fast: a chunk is valid only until you ask for the next one. Use it if you hash,
   * copy or write each chunk immediately, not if you keep chunks.
   */
  readonly lendsMemory?: boolean | undefined;
}

export interface ListOptions extends FileOptions {
  /** 1: the directory's own entries; 0: no limit. */
  readonly depth?: number | undefined;
}

/** Permissions and owner of a new file; a replaced file keeps its own by default. */
export interface OwnershipOptions {
  readonly mode?: number | undefined;
  /** A name, "uid" or "uid:gid". */
  readonly owner?: string | undefined;
}

/** The files of a sandbox. Relative paths start at the default user's home directory. */
export class SandboxFiles {
  readonly #client: () => Promise<AgentClient>;

  /** `client` gives an open client or throws when the sandbox is not ready. */
  constructor(client: () => Promise<AgentClient>) {
    this.#client = client;
  }

  /** Follows a symbolic link unless `follow` is false. */
  async stat(path: string, options: FileOptions & { readonly follow?: boolean | undefined } = {}): Promise<FileEntry> {
    return fileEntry(await this.#call("file.stat", { path, follow: options.follow }, options));
  }

  /** Streams entries sorted by path, because a directory may be larger than memory. */
  async *list(path: string, { depth, signal }: ListOptions = {}): AsyncGenerator<FileEntry, void, undefined> {
    const client = await this.#client();
    const stream = download(client, "file.list", { path, depth }, { signal });
    const lines = jsonLines(stream, { client, method: "file.list", schema: fileInfoSchema, unitsPerLine: 1 });
    for await (const info of lines) yield fileEntry(info);
  }

  /** Resolves with whether the directory was created. */
  async mkdir(
    path: string,
    options: FileOptions & OwnershipOptions & { readonly parents?: boolean | undefined } = {},
  ): Promise<boolean> {
    const { parents, mode, owner } = options;
    return (await this.#call("file.mkdir", { path, parents, mode, owner }, options)).created;
  }

  async move(
    from: string,
    to: string,
    options: FileOptions & { readonly overwrite?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#call("file.move", { from, to, overwrite: options.overwrite }, options);
  }

  async remove(
    path: string,
    options: FileOptions & { readonly recursive?: boolean | undefined; readonly missingOk?: boolean | undefined } = {},
  ): Promise<void> {
    const { recursive, missingOk } = options;
    await this.#call("file.remove", { path, recursive, missing_ok: missingOk }, options);
  }

  async chmod(
    path: string,
    mode: number,
    options: FileOptions & { readonly recursive?: boolean | undefined } = {},
  ): Promise<void> {
    await this.#call("file.chmod", { path, mode, recursive: options.recursive }, options);
  }

  /** Streams the file's bytes, at the reader's pace. */
  async *read(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array, void, undefined> {
    const { offset, lengthBytes: length, lendsMemory, signal } = options;
    const chunks = download(
      await this.#client(),
      "file.read",
      { path, offset, length },
      {
        signal,
        lentBufferBytes: lendsMemory ? MAX_ATTACHMENT_BYTES : undefined,
        windowBytes: READ_WINDOW_BYTES,
        endOffset: (result) => result.size,
      },
    );
    for await (const chunk of chunks) yield chunk.bytes;
  }

  /** Replaces the file atomically and creates missing directories; a reader sees the old file or the new one. */
  async write(
    path: string,
    content: ByteSource,
    options: UploadOptions & OwnershipOptions = {},
  ): Promise<{ readonly sizeBytes: number }> {
    const { mode, owner } = options;
    const { size } = await uploadFile(await this.#client(), { path, mode, owner }, content, options);
    return { sizeBytes: size };
  }

  /** Resolves when the watch is set and will miss no later change. */
  async watch(path: string, options: WatchOptions = {}): Promise<FileWatcher> {
    return watchFiles(await this.#client(), path, options);
  }

  async #call<M extends AgentMethod>(method: M, params: AgentParams<M>, options: FileOptions): Promise<AgentResult<M>> {
    return (await this.#client()).call(method, params, { signal: options.signal });
  }
}
