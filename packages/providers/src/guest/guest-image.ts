import { open, realpath, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";
import { isWithin } from "../host/is-within.ts";
import { remembered } from "../host/remembered.ts";
import { findPacking } from "./archive/find-packing.ts";
import {
  archiveGuestImage,
  digestFile,
  directoryGuestImage,
  type GuestImage,
  type GuestImageOptions,
} from "./image-build.ts";

/** A directory of the host, an archive of a container image, or a file with a filesystem. */
export async function guestImage(rootfs: string, options: GuestImageOptions): Promise<GuestImage> {
  const refuse = (reason: ErrorReason, why: string) =>
    new SandboxError(reason, {
      message: `the root filesystem ${JSON.stringify(rootfs)} cannot be used: ${why}`,
      hint: 'give "host", or the absolute path of a directory with a whole root filesystem, of an ext4 image, or of a container\'s image as an archive',
    });
  if (!isAbsolute(rootfs)) throw refuse("relative_rootfs", "its path is not absolute");
  const path = await realpath(rootfs).catch(() => undefined);
  if (path === undefined) throw refuse("no_such_rootfs", "the path does not exist");
  const info = await stat(path);
  if (info.isFile()) {
    const isFinished = await isFilesystem(path);
    if (!isFinished && (await findPacking(path)) === undefined) {
      throw refuse("rootfs_not_a_filesystem", "it is neither an ext4 filesystem nor a tar archive");
    }
    const sha = await digestOf(path, options);
    return isFinished ? { path, sha } : await archiveGuestImage(path, sha, options);
  }
  if (!info.isDirectory()) throw refuse("rootfs_not_a_directory", "it is neither a directory nor a file");
  const state = await realpath(options.stateDirectory).catch(() => options.stateDirectory);
  if (isWithin(state, path) || isWithin(path, state)) {
    throw refuse("rootfs_overlaps_state", `it overlaps ${state}, where Sandpiper keeps its state`);
  }
  return await directoryGuestImage(path, options);
}

/** By the magic number in the superblock of ext2 and its successors. */
async function isFilesystem(path: string): Promise<boolean> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 1024 + 56);
  return bytesRead === 2 && buffer.readUInt16LE() === 0xef53;
}

/** Computed again only when the file has changed. */
function digestOf(path: string, { imagesDirectory }: GuestImageOptions): Promise<string> {
  const directory = join(imagesDirectory, "known");
  return remembered({ directory, fact: "digest", files: [path] }, () => digestFile(path));
}
