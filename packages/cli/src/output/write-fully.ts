import { write } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { promisify } from "node:util";

const writeToFile = promisify(write);

/** Resolves when all bytes have left the program through one of its own streams; rejects when they cannot. */
export async function writeFully(stream: Writable & { readonly fd: number }, bytes: Uint8Array): Promise<void> {
  // Pipes and terminals are sockets to Node.
  if (stream instanceof Socket) {
    await new Promise<void>((resolve, reject) => {
      stream.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
    return;
  }
  // On a file the stream ignores that a full disk took only part of the bytes.
  for (let at = 0; at < bytes.length; ) at += (await writeToFile(stream.fd, bytes, at)).bytesWritten;
}
