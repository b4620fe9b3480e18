import type { ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import type { Tunnel } from "@sandpiper/core";

/** A connection over the standard input and output of a program. */
export function processTunnel(child: ChildProcessByStdio<Writable, Readable, null>): Tunnel {
  const closed = once(child, "close").then(() => {});
  closed.catch(() => {});
  // The promise of each write reports its failure.
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
