import { readFileSync } from "node:fs";

/** What a command is given to read. */
export function stdinOfJob(): NodeJS.ReadStream | undefined {
  return process.stdin.isTTY && !isForegroundJob() ? undefined : process.stdin;
}

/**
 * False for a job in the background of its terminal: the kernel stops such a program when it reads from the terminal,
 * although the command inside may never want input.
 */
export function isForegroundJob(stat: string = readFileSync("/proc/self/stat", "utf8")): boolean {
  // The program's name comes second, in parentheses, and may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [processGroup, foregroundGroup] = [fields[2], fields[5]];
  return processGroup === foregroundGroup;
}
