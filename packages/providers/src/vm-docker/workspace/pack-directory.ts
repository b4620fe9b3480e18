import { constants, type Stats } from "node:fs";
import { lstat, open, readdir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Pack, pack } from "tar-stream";

export interface PackOptions {
  /** The owner of all entries. */
  readonly uid: number;
  readonly gid: number;
  /** Called with the size of each file before it is read; may throw. */
  readonly onFile: (sizeBytes: number) => void;
}

/** Packs the content of a directory. Keeps links as they are, and leaves out sockets, pipes and devices. */
export function packDirectory(root: string, options: PackOptions): Pack {
  const archive = pack();
  addContent(archive, { path: root, name: "" }, options).then(
    () => archive.finalize(),
    (error: Error) => archive.destroy(error),
  );
  return archive;
}

interface Place {
  readonly path: string;
  readonly name: string;
}

async function addContent(archive: Pack, { path, name }: Place, options: PackOptions): Promise<void> {
  for (const child of (await readdir(path)).sort()) {
    await addEntry(archive, { path: join(path, child), name: name === "" ? child : `${name}/${child}` }, options);
  }
}

async function addEntry(archive: Pack, place: Place, options: PackOptions): Promise<void> {
  const { path, name } = place;
  const info = await lstat(path);
  const header = { name, ...headerOf(info, options) };
  if (info.isDirectory()) {
    archive.entry({ ...header, type: "directory" });
    await addContent(archive, place, options);
  } else if (info.isSymbolicLink()) {
    archive.entry({ ...header, type: "symlink", linkname: await readlink(path) });
  } else if (info.isFile()) {
    await addFile(archive, place, options);
  }
}

/** Opened without following a link, which could have replaced the file in the meantime. */
async function addFile(archive: Pack, { path, name }: Place, options: PackOptions): Promise<void> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const info = await file.stat();
  if (!info.isFile()) return;
  options.onFile(info.size);
  const header = { name, ...headerOf(info, options) };
  if (info.size === 0) {
    archive.entry(header, "");
    return;
  }
  // A file that grows while it is read is cut at its first size.
  const content = file.createReadStream({ autoClose: false, end: info.size - 1 });
  await pipeline(content, archive.entry({ ...header, size: info.size }));
}

function headerOf({ mode, mtime }: Stats, { uid, gid }: PackOptions) {
  return { mode: mode & 0o777, mtime, uid, gid };
}
