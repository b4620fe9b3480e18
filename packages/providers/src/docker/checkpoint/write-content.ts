import { open } from "node:fs/promises";
import { SandboxError } from "@sandpiper/core";

/** Writes what comes to a new file. That it cannot be written is not the fault of whoever sends it. */
export async function writeContent(
  content: AsyncIterable<unknown>,
  path: string,
  onPiece?: (piece: Uint8Array) => void,
): Promise<void> {
  const cannotWrite = (cause: unknown) => {
    throw writeError(path, cause);
  };
  await using file = await open(path, "wx").catch(cannotWrite);
  for await (const piece of content as AsyncIterable<Uint8Array>) {
    onPiece?.(piece);
    await file.writeFile(piece).catch(cannotWrite);
  }
}

function writeError(path: string, cause: unknown): SandboxError {
  const isFull = cause instanceof Error && "code" in cause && ["ENOSPC", "EDQUOT"].includes(String(cause.code));
  return new SandboxError(isFull ? "resource_exhausted" : "internal", {
    reason: isFull ? "disk_full" : "write_failed",
    message: `${path} cannot be written: ${cause instanceof Error ? cause.message : cause}`,
    hint: isFull ? "make room on the disk of the node's home" : "look at that directory",
    cause,
  });
}
