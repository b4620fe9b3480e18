import { readFileSync } from "node:fs";

let known: string | undefined;

/** The features of this host's processor: saved memory needs them where it is restored. */
export function cpuFeatures(): string {
  known ??=
    /^(?:flags|Features)\s*:\s*(.*)$/m
      .exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1]
      ?.split(/\s+/)
      .toSorted()
      .join(" ") ?? "";
  return known;
}
