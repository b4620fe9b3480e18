import { relative } from "node:path";

/** Whether `path` is `ancestor` or lies below it. */
export function isWithin(ancestor: string, path: string): boolean {
  const step = relative(ancestor, path);
  return step !== ".." && !step.startsWith("../");
}
