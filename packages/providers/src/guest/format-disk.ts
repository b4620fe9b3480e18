import { existsSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { SandboxError } from "@sandpiper/core";
import { currentOwner } from "../host/process-owner.ts";
import { publishFile } from "../host/publish-file.ts";
import { runProgram } from "../host/run-program.ts";
import { transientName } from "../host/transient-name.ts";

const MKFS = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];

/** Without a journal, because a disk ends with its machine; with complete tables, because a guest would complete them in the background. */
const FORMAT = [
  ...["-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode,^metadata_csum"],
  ...["-E", "lazy_itable_init=0,root_owner=0:0"],
];

/**
 * With a journal, because it outlives machines that are killed. Few inodes and no complete tables: those would take most of the
 * space of an empty disk.
 */
const VOLUME_FORMAT = [
  ...["-q", "-F", "-t", "ext4", "-m", "0", "-i", "65536", "-O", "^resize_inode,^metadata_csum"],
  ...["-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0"],
];

/** Makes a sparse raw disk with an empty filesystem for volumes. */
export function formatVolumeDisk(path: string, sizeMib: number): Promise<void> {
  return formatDisk(path, sizeMib, VOLUME_FORMAT);
}

/** Makes a disk with an empty filesystem once for each size; `convert` writes it in the format of the emulator. */
export async function makeBlankDisk(
  path: string,
  sizeMib: number,
  convert: (raw: string, draft: string) => Promise<void>,
): Promise<void> {
  if (existsSync(path)) return;
  await publishFile(path, async (draft) => {
    const raw = transientName(`${path}.raw`, await currentOwner());
    try {
      await formatDisk(raw, sizeMib);
      await convert(raw, draft);
    } finally {
      await rm(raw, { force: true });
    }
  });
}

async function formatDisk(path: string, sizeMib: number, format = FORMAT): Promise<void> {
  const file = await open(path, "w", 0o600);
  await file.truncate(sizeMib * 2 ** 20).finally(() => file.close());
  for (const mkfs of MKFS) {
    const { exitCode } = await runProgram([mkfs, ...format, path], { keepOutput: false });
    if (exitCode === 0) return;
  }
  throw new SandboxError("mkfs_failed", { message: `mkfs.ext4 could not make a filesystem in ${path}` });
}
