import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Guest } from "../guest/guest.ts";
import { LeftOut } from "./left-out.ts";
import type { Transfer, TransferOptions } from "./transfer.ts";

/** How many bytes a download may still write. */
interface Budget {
  leftBytes: number;
}

/**
 * Copies a file, or a directory with its contents, out of a sandbox. Names and sizes come from untrusted code, so it
 * writes nothing outside the target, creates no links, and limits the size: a sparse file could fill this disk.
 */
export async function download(guest: Guest, transfer: Transfer, { notice, progress }: TransferOptions): Promise<void> {
  const { from, to, shown } = transfer;
  const leftOut = new LeftOut();
  const budget = { leftBytes: guest.diskMib * 1024 * 1024 };
  const { kind, mode } = await guest.files.stat(from);
  if (kind === "file") return downloadFile(guest, { ...transfer, mode, budget, progress });
  if (kind !== "directory") throw notAFile(transfer, kind);
  await mkdir(to, { recursive: true });
  for await (const entry of guest.files.list(from, { depth: 0 })) {
    requireInside(entry.path, from);
    const place = { from: join(from, entry.path), to: join(to, entry.path), shown };
    if (entry.kind === "directory") await mkdir(place.to, { recursive: true });
    else if (entry.kind === "file") await downloadFile(guest, { ...place, mode: entry.mode, budget, progress });
    else leftOut.add(place.from, entry.kind);
  }
  if (leftOut.message !== undefined) notice(`${shown}: ${leftOut.message}`);
}

interface FileDownload extends Transfer, Pick<TransferOptions, "progress"> {
  readonly mode: number;
  readonly budget: Budget;
}

async function downloadFile(guest: Guest, file: FileDownload): Promise<void> {
  const { from, to, mode, budget, progress } = file;
  await mkdir(dirname(to), { recursive: true });
  const draft = `${to}.${randomUUID()}`;
  try {
    // Set-user-ID and set-group-ID bits do not leave the sandbox.
    const target = createWriteStream(draft, { mode: mode & 0o777, flags: "wx" });
    await pipeline(progress.counting(within(budget, guest.files.read(from), file)), target);
    await rename(draft, to);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function* within(
  budget: Budget,
  source: AsyncIterable<Uint8Array>,
  place: Pick<Transfer, "from" | "shown">,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of source) {
    budget.leftBytes -= bytes.length;
    if (budget.leftBytes < 0) {
      throw new SandboxError("download_too_large", {
        message: `${place.shown} stopped at ${place.from}: the download is larger than the sandbox's whole disk`,
      });
    }
    yield bytes;
  }
}

function requireInside(path: string, directory: string): void {
  const parts = path.split("/");
  if (!path.includes("\0") && parts.every((part) => part !== "" && part !== "." && part !== "..")) return;
  throw new SandboxError("untrusted_path", {
    message: `the sandbox lists ${JSON.stringify(path)} below ${directory}, which could escape the target directory`,
    hint: "do not trust files from this sandbox",
  });
}

function notAFile({ from, shown }: Transfer, kind: string): SandboxError {
  return new SandboxError("not_downloadable", { message: `${shown}: ${from} is a ${kind}, not a file or directory` });
}
