import type { Writable } from "node:stream";

/** Writes the pieces as one unit; the promise, if any, resolves when more may follow. */
export function writePieces(writer: Writable, pieces: readonly Uint8Array[]): Promise<void> | undefined {
  writer.cork();
  for (const piece of pieces) writer.write(piece);
  writer.uncork();
  return writer.writableNeedDrain ? drained(writer) : undefined;
}

/** Also resolves when the stream ends; the caller then finds the channel closed. */
export function drained(writer: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      writer.off("drain", done);
      writer.off("close", done);
      resolve();
    };
    writer.on("drain", done);
    writer.on("close", done);
  });
}
