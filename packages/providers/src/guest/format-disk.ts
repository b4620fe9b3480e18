import { open } from "node:fs/promises";
import { SandboxError } from "@sandpiper/core";
import { runProgram } from "../host/run-program.ts";

const MKFS = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];

/** Without a journal, since nobody mounts it after its machine has ended, and with tables that are complete, so that no guest sets about to complete them. */
const FORMAT = [
  ...["-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode,^metadata_csum"],
  ...["-E", "lazy_itable_init=0,root_owner=0:0"],
];

/** Makes a file that is a disk with an empty filesystem. */
export async function formatDisk(path: string, sizeMib: number): Promise<void> {
  const file = await open(path, "w", 0o600);
  await file.truncate(sizeMib * 2 ** 20).finally(() => file.close());
  for (const mkfs of MKFS) {
    const { exitCode } = await runProgram([mkfs, ...FORMAT, path], { keepOutput: false });
    if (exitCode === 0) return;
  }
  throw new SandboxError("failed_precondition", {
    reason: "mkfs_failed",
    message: `mkfs.ext4 could not make a filesystem in ${path}`,
    hint: "install e2fsprogs, and see that there is room on the disk",
  });
}
