import { posix } from "node:path";
import { type FileEntry, SandboxError, type SandboxFiles } from "@sandpiper/core";
import { type Header, type Pack, pack } from "tar-stream";

/** Streams a directory as a tar archive. Skips everything but files, directories and symlinks. */
export async function* packDirectory(
  files: SandboxFiles,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const archive = pack();
  const entries = files.list(path, { depth: 0, signal });
  // Before the answer begins, so that a missing directory is an error and not an empty archive.
  const first = await entries.next();
  const filled = fill(archive, { files, path, signal }, first, entries).catch((thrown: unknown) => {
    archive.destroy(thrown as Error);
    throw thrown;
  });
  filled.catch(() => {});
  try {
    yield* archive as AsyncIterable<Uint8Array>;
    await filled;
  } finally {
    archive.destroy();
    await entries.return();
  }
}

type EntryHeader = Partial<Header> & Pick<Header, "name">;

interface Source {
  readonly files: SandboxFiles;
  readonly path: string;
  readonly signal: AbortSignal;
}

async function fill(
  archive: Pack,
  source: Source,
  first: IteratorResult<FileEntry, void>,
  rest: AsyncIterator<FileEntry, void>,
): Promise<void> {
  for (let next = first; !next.done; next = await rest.next()) await add(archive, source, next.value);
  archive.finalize();
}

async function add(archive: Pack, source: Source, entry: FileEntry): Promise<void> {
  const { mode, uid, gid, modifiedAt: mtime } = entry;
  const header = { name: entry.path, mode, uid, gid, mtime };
  if (entry.kind === "directory") await addEmpty(archive, { ...header, name: `${entry.path}/`, type: "directory" });
  if (entry.kind === "symlink" && entry.target) {
    await addEmpty(archive, { ...header, type: "symlink", linkname: entry.target });
  }
  if (entry.kind === "file") await addFile(archive, source, { ...header, type: "file", size: entry.sizeBytes });
}

function addEmpty(archive: Pack, header: EntryHeader): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  archive.entry(header, (error) => (error ? reject(error) : resolve()));
  return promise;
}

async function addFile(archive: Pack, { files, path, signal }: Source, header: EntryHeader): Promise<void> {
  const lengthBytes = header.size ?? 0;
  const content = files.read(posix.join(path, header.name), { lengthBytes, signal });
  let next: IteratorResult<Uint8Array, void>;
  try {
    next = lengthBytes === 0 ? { done: true, value: undefined } : await content.next();
  } catch (thrown) {
    // Skip a file that was removed since the directory was listed.
    if (SandboxError.from(thrown).code === "not_found") return;
    throw thrown;
  }
  const ended = Promise.withResolvers<void>();
  ended.promise.catch(() => {});
  const sink = archive.entry(header, (error) => (error ? ended.reject(error) : ended.resolve()));
  try {
    for (; !next.done; next = await content.next()) {
      const bytes = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
      if (sink.write(bytes)) continue;
      await Promise.race([new Promise<void>((resolve) => sink.once("drain", () => resolve())), ended.promise]);
    }
    // Fails the archive if the file has become shorter since it was listed.
    sink.end(null);
    await ended.promise;
  } finally {
    await content.return();
  }
}
