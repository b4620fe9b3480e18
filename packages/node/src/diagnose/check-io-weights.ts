import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Check } from "./check.ts";

const NAME = "disk scheduler";

/** Checks whether the disk of the home directory serves the node before its sandboxes. */
export function checkIoWeights(home: string, devices = "/sys/dev/block"): Check {
  let directory = home;
  while (!existsSync(directory)) directory = dirname(directory);
  const { dev } = statSync(directory);
  const scheduler = readScheduler(join(devices, `${major(dev)}:${minor(dev)}`));
  if (scheduler === "bfq") return { name: NAME, status: "ok", detail: "bfq: the node comes before its sandboxes" };
  const detail = `${scheduler ?? "unknown"}, without weights: a sandbox that writes much can slow the node and other sandboxes`;
  // Most machines use another one, and it matters only beside hostile sandboxes.
  return { name: NAME, status: "ok", detail };
}

/** The scheduler of a disk, or of the disk that has this partition. */
function readScheduler(device: string): string | undefined {
  const file = ["queue/scheduler", "../queue/scheduler"].map((name) => `${device}/${name}`).find(existsSync);
  return file === undefined ? undefined : /\[(.+?)\]/.exec(readFileSync(file, "utf8"))?.[1];
}

function major(device: number): number {
  return (device >> 8) & 0xfff;
}

function minor(device: number): number {
  return (device & 0xff) | ((device >> 12) & 0xfff00);
}
