import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Tunnel } from "@sandpiper/core";

/** A connection that a program carries on its standard input and output. */
export function processTunnel(child: ChildProcessByStdio<Writable, Readable, null>): Tunnel {
  const closed = once(child, "close").then(() => {});
  closed.catch(() => {});
  // Whoever writes is told by the promise of the write.
  child.stdin.on("error", () => {});
  const close = () => void child.kill("SIGKILL");
  return {
    readable: child.stdout,
    write: (bytes) =>
      new Promise((resolve, reject) => {
        child.stdin.write(bytes, (error) => (error ? reject(error) : resolve()));
      }),
    end: () =>
      new Promise((resolve) => {
        child.stdin.end(() => resolve());
      }),
    close,
    closed,
    async [Symbol.asyncDispose]() {
      close();
    },
  };
}
