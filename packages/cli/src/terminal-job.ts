import { readFileSync } from "node:fs";

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
