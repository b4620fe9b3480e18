import { SandboxError } from "@sandpiper/core";
import { type Extract, extract } from "tar-stream";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";
import { inPieces } from "../request-bytes.ts";
import { UnpackTarget } from "./unpack-target.ts";

export interface UnpackOptions {
  /** The target directory; created if it does not exist. */
  readonly path: string;
  /** Limit for all files together. */
  readonly limitBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Unpacks a tar archive as it arrives. The archive is not trusted: nothing is written outside the target directory or
 * through a link. Entries before a refused one stay.
 */
export async function unpackArchive(
  live: LiveSandbox,
  archive: AsyncIterable<Uint8Array>,
  options: UnpackOptions,
): Promise<{ sizeBytes: number }> {
  const reader = extract();
  let flaw: Error | undefined;
  reader.on("error", (error) => {
    flaw = error as Error;
  });
  let cause: unknown;
  const fed = feed(reader, archive).catch((thrown: unknown) => {
    cause = thrown;
    reader.destroy(thrown as Error);
  });
  const target = new UnpackTarget(live, options);
  let sizeBytes = 0;
  try {
    for await (const entry of reader) {
      sizeBytes += entry.header.size ?? 0;
      if (sizeBytes > options.limitBytes) throw tooLarge(options.limitBytes);
      await unpackEntry(target, entry);
    }
  } catch (thrown) {
    reader.destroy();
    // Report the first cause: a failed source makes the reader fail, and that the entry.
    throw cause ?? (flaw === undefined ? thrown : badArchive(flaw));
  }
  await fed;
  await target.finish();
  return { sizeBytes };
}

type Entry = Extract extends AsyncIterable<infer Each> ? Each : never;

async function unpackEntry(target: UnpackTarget, entry: Entry): Promise<void> {
  const { name, mode = 0, type, linkname } = entry.header;
  const at = archiveName(name);
  if (type === "file" || type === "contiguous-file")
    return target.file(at, inPieces(entry as AsyncIterable<Uint8Array>), mode & 0o777);
  entry.resume();
  if (type === "directory") return target.directory(at, mode & 0o777);
  if (type === "symlink" && linkname) return target.symlink(at, linkTarget(name, linkname));
  throw new SandboxError("unsupported_entry", {
    message: `the archive contains ${JSON.stringify(name.slice(0, 256))} of the unsupported type ${type ?? "unknown"}`,
  });
}

/** The kernel's limit for a path. Longer names cost memory and cannot be used. */
const MAX_PATH_BYTES = 4095;

/** An entry's path relative to the target directory; empty for that directory itself. */
export function archiveName(name: string): string {
  requireShort(name, name);
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (!name.startsWith("/") && !name.includes("\0") && !parts.includes("..")) return parts.join("/");
  throw new SandboxError("path_escapes", {
    message: `the archive contains ${JSON.stringify(name.slice(0, 256))}, which could lead outside the target directory`,
  });
}

function linkTarget(name: string, target: string): string {
  requireShort(target, name);
  if (!target.includes("\0")) return target;
  throw new SandboxError("bad_archive", {
    message: `the archive contains ${JSON.stringify(name.slice(0, 256))}, a link whose target contains NUL`,
  });
}

function requireShort(path: string, name: string): void {
  if (Buffer.byteLength(path) <= MAX_PATH_BYTES) return;
  throw new SandboxError("bad_archive", {
    message: `the archive contains ${JSON.stringify(name.slice(0, 256))}…, whose name or link target is longer than ${MAX_PATH_BYTES} bytes`,
  });
}

/** Rejects with the source's error. Resolves early when the reader is destroyed. */
async function feed(reader: Extract, archive: AsyncIterable<Uint8Array>): Promise<void> {
  const closed = new Promise<void>((resolve) => reader.once("close", () => resolve()));
  for await (const bytes of archive) {
    if (reader.destroyed) return;
    if (reader.write(bytes)) continue;
    await Promise.race([new Promise<void>((resolve) => reader.once("drain", () => resolve())), closed]);
  }
  reader.end(null);
}

function badArchive(flaw: Error): SandboxError {
  return new SandboxError("bad_archive", { message: `the request's body is not a valid tar archive: ${flaw.message}` });
}

function tooLarge(limitBytes: number): SandboxError {
  return new SandboxError("body_too_large", {
    message: `the archive's files are larger than the sandbox's disk of ${limitBytes} bytes`,
    hint: "send a smaller archive, or create the sandbox with a larger diskMib",
    details: { limitBytes },
  });
}
