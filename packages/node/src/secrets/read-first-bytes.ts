import type { Duplex } from "node:stream";

/**
 * Reads until `enough` accepts what has arrived, or the stream ends; then puts the bytes back. Rejects if the stream breaks.
 */
export function readFirstBytes(stream: Duplex, enough: (bytes: Buffer) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = Buffer.alloc(0);
    const finish = () => {
      stream.off("readable", read).off("end", finish).off("error", fail).off("close", fail);
      if (bytes.length > 0 && !stream.readableEnded) stream.unshift(bytes);
      resolve(bytes);
    };
    const fail = (error?: Error) => {
      stream.off("readable", read).off("end", finish).off("error", fail).off("close", fail);
      reject(error ?? new Error("the connection ended before its first bytes"));
    };
    const read = () => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) {
        bytes = Buffer.concat([bytes, chunk]);
        if (enough(bytes)) return finish();
      }
    };
    stream.on("readable", read).once("end", finish).once("error", fail).once("close", fail);
  });
}
