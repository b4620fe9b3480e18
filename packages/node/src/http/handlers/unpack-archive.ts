import { SandboxError } from "@sandpiper/core";
import { type Extract, extract } from "tar-stream";
import type { LiveSandbox } from "../../sandboxes/live-sandbox.ts";
import { inPieces } from "../request-bytes.ts";
import { archiveName } from "./archive-name.ts";
import { UnpackTarget } from "./unpack-target.ts";

export interface UnpackOptions {
  /** The directory to unpack into; made where it is missing. */
  readonly path: string;
  /** Of all files together. */
  readonly limitBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Unpacks a tar archive as it arrives. Names, sizes and links come from whoever made it: nothing is written outside the
 * directory, nor through a link that leads elsewhere. What came before an entry that is refused stays.
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
    // What made the feeding fail made the reading fail, and that made everything else fail.
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
  if (type === "symlink" && linkname) return target.symlink(at, linkname);
  throw new SandboxError("invalid_argument", {
    reason: "unsupported_entry",
    message: `the archive holds ${JSON.stringify(name.slice(0, 256))}, a ${type ?? "thing"} that is not unpacked`,
    hint: "archives may hold files, directories and symlinks; tar's --hard-dereference turns hard links into files",
  });
}

/** Rejects with what the source threw; ends quietly when the reader has given up. */
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
  return new SandboxError("invalid_argument", {
    reason: "bad_archive",
    message: `the body is no tar archive that can be read: ${flaw.message}`,
    hint: "send an uncompressed tar archive",
  });
}

function tooLarge(limitBytes: number): SandboxError {
  return new SandboxError("invalid_argument", {
    reason: "body_too_large",
    message: `the files of the archive are larger than the sandbox's disk of ${limitBytes} bytes`,
    hint: "send less, or create the sandbox with a larger diskMib",
    details: { limitBytes },
  });
}
