import { ByteCollector, SandboxError } from "@sandpiper/protocol";
import type { FileOptions, SandboxFiles } from "./sandbox-files.ts";

/** A file in a sandbox may claim any size, so the copy in memory has a limit. */
export const DEFAULT_MAX_FILE_BYTES = 256 * 1024 * 1024;

export interface ReadFileOptions extends FileOptions {
  /** A larger file is refused; read it as a stream instead. */
  readonly maxBytes?: number | undefined;
}

export async function readWholeFile(
  files: SandboxFiles,
  path: string,
  options: ReadFileOptions = {},
): Promise<ByteCollector> {
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_FILE_BYTES;
  // If stat fails, the read reports the error; a wrong size only costs a copy.
  const info = await files.stat(path, { signal: options.signal }).catch(() => undefined);
  const collected = new ByteCollector(Math.min(info?.sizeBytes ?? 0, maxBytes));
  for await (const bytes of files.read(path, { signal: options.signal })) {
    collected.add(bytes);
    if (collected.byteLength > maxBytes) {
      throw new SandboxError("file_too_large", {
        message: `${path} is longer than ${maxBytes} bytes and was not read into memory`,
        details: { path, maxBytes },
      });
    }
  }
  return collected;
}
