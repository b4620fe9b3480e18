import { write } from "node:fs";
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { promisify } from "node:util";
import { SandboxError } from "@sandpiper/protocol/error";
import type { Arguments } from "../command/arguments.ts";
import { exitCodeOfSignal } from "../command/exit-code.ts";
import type { Interruption } from "../command/interruption.ts";

/** Prints a text on standard output, unless its reader has closed the pipe. */
export async function print(text: string): Promise<void> {
  try {
    await writeFully(process.stdout, Buffer.from(text));
  } catch (error) {
    if (!isBrokenPipe(error)) throw error;
  }
}

export async function printJson(value: unknown): Promise<void> {
  await print(`${JSON.stringify(value)}\n`);
}

/** A message of Sandpiper's own, on standard error. */
export type Notice = (message: string) => void;

/** `--quiet` suppresses notices. */
export function noticeOf(arguments_: Arguments): Notice {
  if (arguments_.has("quiet")) return () => {};
  return (message) => process.stderr.write(`sandpiper: ${message}\n`);
}

/** The command waits while this does. */
export type OutputHandler = (source: "stdout" | "stderr", bytes: Uint8Array) => Promise<void> | void;

/** Forwards a command's output as it comes. A reader that closes the pipe ends the run. */
export function passThrough(interruption: Interruption): OutputHandler {
  return async (source, bytes) => {
    try {
      await writeFully(process[source], bytes);
    } catch (error) {
      if (isBrokenPipe(error)) return interruption.interrupt(exitCodeOfSignal("SIGPIPE"));
      throw new SandboxError("output_failed", {
        message: `cannot write the command's ${source}: ${error instanceof Error ? error.message : error}`,
        cause: error,
      });
    }
  };
}

const writeToFile = promisify(write);

/** Resolves when all bytes have left the process; rejects when they cannot. */
async function writeFully(stream: Writable & { readonly fd: number }, bytes: Uint8Array): Promise<void> {
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

function isBrokenPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
