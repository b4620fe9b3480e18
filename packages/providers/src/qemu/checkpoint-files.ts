import { constants } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { BASE_DISK, DISK } from "./machine/launch-machine.ts";

/** Memory and the state of the devices, as QEMU writes them. */
export const STATE_FILE = "state";

/** Copies the disks of a machine in either direction, without copying data where the filesystem supports it. */
export async function copyDisks(from: string, to: string): Promise<void> {
  for (const name of [DISK, BASE_DISK]) {
    await copyFile(join(from, name), join(to, name), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
  }
}
