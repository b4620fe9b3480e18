import { readFileSync } from "node:fs";
import type { Readable } from "node:stream";
import { SandboxError } from "@sandpiper/protocol/error";
import type { GuestProcess } from "../guest/guest.ts";

/** The input of a command; undefined for an empty one. */
export function stdinOfJob(): NodeJS.ReadStream | undefined {
  return process.stdin.isTTY && !isForegroundJob() ? undefined : process.stdin;
}

/**
 * False for a job in the background of its terminal: the kernel stops such a program when it reads from the terminal,
 * although the command inside may never want input.
 */
export function isForegroundJob(stat: string = readFileSync("/proc/self/stat", "utf8")): boolean {
  // The program's name comes second, in parentheses, and may contain any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [processGroup, foregroundGroup] = [fields[2], fields[5]];
  return processGroup === foregroundGroup;
}

/** Forwards standard input to a process, no faster than it reads, and closes the process's input at the end. */
export async function feedStdin(process_: Pick<GuestProcess, "write" | "closeStdin">, stdin: Readable): Promise<void> {
  try {
    for await (const chunk of stdin) await process_.write(chunk);
    await process_.closeStdin();
  } catch (error) {
    // A process need not read its input to the end.
    if (!(error instanceof SandboxError)) throw error;
  }
}
