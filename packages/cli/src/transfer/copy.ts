import { stat } from "node:fs/promises";
import { basename, join, posix, resolve } from "node:path";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Guest } from "../guest/guest.ts";
import type { Copy } from "./copy-place.ts";
import { download } from "./download.ts";
import type { TransferOptions } from "./transfer.ts";
import { upload } from "./upload.ts";

export interface CopyOptions extends TransferOptions {
  readonly shown: string;
}

/** As `cp -r` does: into a target that is a directory or ends with a slash, otherwise as the target. */
export async function copy(guest: Guest, { direction, from, to }: Copy, options: CopyOptions): Promise<void> {
  const { shown } = options;
  if (direction === "in") {
    const isDirectory = to.endsWith("/") || (await isDirectoryInside(guest, to));
    const target = isDirectory ? posix.join(to, basename(resolve(from))) : to;
    return upload(guest, { from, to: target, shown }, { ...options, owner: undefined });
  }
  const isDirectory = to.endsWith("/") || (await isDirectoryHere(to));
  const name = posix.basename(posix.resolve("/home/user", from));
  return download(guest, { from, to: isDirectory ? join(to, name) : to, shown }, options);
}

async function isDirectoryInside(guest: Guest, path: string): Promise<boolean> {
  try {
    return (await guest.files.stat(path)).kind === "directory";
  } catch (error) {
    if (error instanceof SandboxError && error.code === "not_found") return false;
    throw error;
  }
}

async function isDirectoryHere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}
