import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Sandbox, SandboxError } from "@sandpiper/core";
import type { Notice } from "../notice.ts";
import { LeftOut } from "./left-out.ts";
import type { Transfer } from "./transfer.ts";

/** How many bytes a download may still write. */
interface Budget {
  leftBytes: number;
}

/**
 * Copies a file, or a directory with all it holds, out of a sandbox. Names and sizes come from code nobody trusts:
 * nothing is written outside the target, no link is made, and a file full of holes does not fill this machine's disk.
 */
export async function download(sandbox: Sandbox, transfer: Transfer, notice: Notice): Promise<void> {
  const { from, to } = transfer;
  const leftOut = new LeftOut();
  const budget = { leftBytes: sandbox.config.diskMib * 1024 * 1024 };
  const { kind, mode } = await sandbox.files.stat(from);
  if (kind === "file") return downloadFile(sandbox, { from, to, mode, budget });
  if (kind !== "directory") throw notAFile(transfer, kind);
  await mkdir(to, { recursive: true });
  for await (const entry of sandbox.files.list(from, { depth: 0 })) {
    requireInside(entry.path, from);
    const place = { from: join(from, entry.path), to: join(to, entry.path) };
    if (entry.kind === "directory") await mkdir(place.to, { recursive: true });
    else if (entry.kind === "file") await downloadFile(sandbox, { ...place, mode: entry.mode, budget });
    else leftOut.add(place.from, entry.kind);
  }
  if (leftOut.message !== undefined) notice(`--download ${from}:${to}: ${leftOut.message}`);
}

async function downloadFile(
  sandbox: Sandbox,
  { from, to, mode, budget }: Transfer & { readonly mode: number; readonly budget: Budget },
): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const draft = `${to}.${randomUUID()}`;
  try {
    // Permissions that would let a program act as its owner do not leave the sandbox.
    const target = createWriteStream(draft, { mode: mode & 0o777, flags: "wx" });
    await pipeline(within(budget, sandbox.files.read(from), from), target);
    await rename(draft, to);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function* within(budget: Budget, source: AsyncIterable<Uint8Array>, from: string): AsyncGenerator<Uint8Array> {
  for await (const bytes of source) {
    budget.leftBytes -= bytes.length;
    if (budget.leftBytes < 0) {
      throw new SandboxError("resource_exhausted", {
        reason: "download_too_large",
        message: `--download stopped at ${from}: it is larger than the sandbox's whole disk`,
        hint: "raise --disk if it really is that large",
      });
    }
    yield bytes;
  }
}

function requireInside(path: string, directory: string): void {
  const parts = path.split("/");
  if (!path.includes("\0") && parts.every((part) => part !== "" && part !== "." && part !== "..")) return;
  throw new SandboxError("permission_denied", {
    reason: "path_escapes",
    message: `the sandbox lists ${JSON.stringify(path)} below ${directory}, which could lead outside`,
    hint: "do not trust anything that this sandbox gave you",
  });
}

function notAFile({ from, to }: Transfer, kind: string): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "not_a_file",
    message: `--download ${from}:${to}: ${from} is a ${kind}`,
    hint: "name a file or a directory",
  });
}
