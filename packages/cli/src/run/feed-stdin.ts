import type { Readable } from "node:stream";
import { SandboxError } from "@sandpiper/core";
import type { GuestProcess } from "../guest/guest.ts";

/** Hands standard input on to a process, no faster than it reads; its end closes the process's. */
export async function feedStdin(process_: Pick<GuestProcess, "write" | "closeStdin">, stdin: Readable): Promise<void> {
  try {
    for await (const chunk of stdin) await process_.write(chunk);
    await process_.closeStdin();
  } catch (error) {
    // A process need not read its input to the end.
    if (!(error instanceof SandboxError)) throw error;
  }
}
