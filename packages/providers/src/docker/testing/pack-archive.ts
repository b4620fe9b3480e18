import { type Pack, pack } from "tar-stream";

export function packArchive(files: Readonly<Record<string, string | Buffer>>): Pack {
  const archive = pack();
  for (const [name, content] of Object.entries(files))
    archive.entry({ name, mtime: new Date(0) }, Buffer.from(content));
  archive.finalize();
  return archive;
}
