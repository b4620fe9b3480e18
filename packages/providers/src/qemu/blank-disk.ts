import { mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { SandboxError } from "@sandpiper/core";
import { currentOwner } from "../host/process-owner.ts";
import { runProgram } from "../host/run-program.ts";
import { transientName } from "../host/transient-name.ts";
import { filledClusters, writeOverlayDisk } from "./overlay-disk.ts";

const MKFS = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];

/**
 * A disk with an empty filesystem, made once for each size. Without a journal, since nobody mounts it after its machine
 * has ended, and with tables that are complete, so that no guest sets about to complete them.
 */
export async function blankDisk(path: string, sizeMib: number): Promise<void> {
  if (await isFile(path)) return;
  const draft = transientName(path, await currentOwner());
  const raw = transientName(`${path}.raw`, await currentOwner());
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  try {
    const file = await open(raw, "w", 0o600);
    await file.truncate(sizeMib * 2 ** 20).finally(() => file.close());
    await format(raw);
    await rm(draft, { force: true });
    await writeOverlayDisk(draft, { sizeBytes: sizeMib * 2 ** 20, clusters: filledClusters(raw) });
    await rename(draft, path);
  } finally {
    await rm(raw, { force: true });
    await rm(draft, { force: true });
  }
}

async function format(path: string): Promise<void> {
  const options = [
    "-q",
    "-F",
    "-m",
    "0",
    "-O",
    "^has_journal,^resize_inode,^metadata_csum",
    "-E",
    "lazy_itable_init=0,root_owner=0:0",
  ];
  for (const mkfs of MKFS) {
    const { exitCode } = await runProgram([mkfs, ...options, path], { keepOutput: false });
    if (exitCode === 0) return;
  }
  throw new SandboxError("failed_precondition", {
    reason: "mkfs_failed",
    message: `mkfs.ext4 could not make a filesystem in ${path}`,
    hint: "install e2fsprogs, and see that there is room on the disk",
  });
}

async function isFile(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}
