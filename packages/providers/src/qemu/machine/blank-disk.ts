import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { formatDisk } from "../../guest/format-disk.ts";
import { currentOwner } from "../../host/process-owner.ts";
import { transientName } from "../../host/transient-name.ts";
import { filledClusters, writeOverlayDisk } from "./overlay-disk.ts";

/** A disk with an empty filesystem, made once for each size. */
export async function blankDisk(path: string, sizeMib: number): Promise<void> {
  if (await isFile(path)) return;
  const draft = transientName(path, await currentOwner());
  const raw = transientName(`${path}.raw`, await currentOwner());
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    await formatDisk(raw, sizeMib);
    await rm(draft, { force: true });
    await writeOverlayDisk(draft, { sizeBytes: sizeMib * 2 ** 20, clusters: filledClusters(raw) });
    await rename(draft, path);
  } finally {
    await rm(raw, { force: true });
    await rm(draft, { force: true });
  }
}

async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
