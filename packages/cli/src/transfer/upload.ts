import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { join, posix } from "node:path";
import { SandboxError, UPLOAD_PIECE_BYTES } from "@sandpiper/core";
import type { Guest } from "../guest/guest.ts";
import { concurrently } from "./concurrently.ts";
import { type HostEntry, walkHostTree } from "./host-tree.ts";
import { LeftOut } from "./left-out.ts";
import type { Transfer, TransferOptions } from "./transfer.ts";

/** Small files wait for answers more than for bytes. */
const MAX_CONCURRENT_FILES = 16;
/** The owner needs these bits on a directory while it is being filled. */
const OWNER_BITS = 0o700;

/** A link or a pipe may have replaced a file since the tree was listed: do not follow it or wait for it. */
const NO_FOLLOW = constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface UploadOptions extends TransferOptions {
  /** The owner of the files inside; by default the sandbox's user. */
  readonly owner: string | undefined;
}

/** Copies a file, or a directory with its contents, into a sandbox; keeps modes, and copies links as links. */
export async function upload(guest: Guest, transfer: Transfer, options: UploadOptions): Promise<void> {
  const { from, shown } = transfer;
  try {
    // The user may name a pipe, as in --upload <(command):DST.
    if (!(await stat(from)).isDirectory()) return await uploadFile(guest, transfer, { ...options, flags: 0 });
    await uploadDirectory(guest, transfer, options);
  } catch (error) {
    if (!(error instanceof Error) || error instanceof SandboxError || !("syscall" in error)) throw error;
    throw new SandboxError("unreadable_upload", {
      message: `${shown}: cannot read the source: ${error.message}`,
      cause: error,
    });
  }
}

async function uploadDirectory(guest: Guest, { from, to, shown }: Transfer, options: UploadOptions): Promise<void> {
  const entries = await Array.fromAsync(walkHostTree(from));
  const directories = entries.filter(({ kind }) => kind === "directory");
  const { owner, notice, progress } = options;
  const leftOut = new LeftOut();
  for (const { path, mode } of directories) {
    await guest.files.mkdir(posix.join(to, path), { parents: true, mode: mode | OWNER_BITS, owner });
  }
  const { path: root } = await guest.files.stat(to);
  const uploadEntry = async ({ path, kind, target }: HostEntry) => {
    const place = { from: join(from, path), to: posix.join(root, path), shown };
    if (kind === "file") await uploadFile(guest, place, { owner, progress, flags: NO_FOLLOW });
    if (kind === "symlink") await makeLink(guest, { target: target as string, path: place.to, owner });
    if (kind === "other") leftOut.add(place.from, "neither file nor directory");
  };
  await concurrently(MAX_CONCURRENT_FILES, entries, uploadEntry);
  for (const { path, mode } of directories.reverse()) await guest.files.chmod(posix.join(to, path), mode);
  if (leftOut.message !== undefined) notice(`${shown}: ${leftOut.message}`);
}

async function uploadFile(
  guest: Guest,
  { from, to }: Transfer,
  { owner, progress, flags }: Omit<UploadOptions, "notice"> & { readonly flags: number },
): Promise<void> {
  await using file = await open(from, constants.O_RDONLY | flags);
  const { mode } = await file.stat();
  const source = progress.counting(file.createReadStream({ highWaterMark: UPLOAD_PIECE_BYTES }));
  await guest.files.write(to, source, { mode: mode & 0o7777, owner });
}

async function makeLink(
  guest: Guest,
  { target, path, owner }: { target: string; path: string; owner: string | undefined },
): Promise<void> {
  const result = await guest.exec(["ln", "-sfn", "--", target, path], owner === undefined ? {} : { user: owner });
  if (result.exitCode === 0) return;
  throw new SandboxError("link_failed", {
    message: `cannot create the link ${path} in sandbox ${guest.id}: ${result.stderr.trim()}`,
    hint: "upload a directory without links, or use an image that has ln",
  });
}
