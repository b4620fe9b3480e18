import { existsSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Check } from "./check.ts";

const MIB = 1024 ** 2;
/** The default disk of one sandbox. */
const SMALL_MIB = 1024;

/** Everything that sandboxes write lies below the state directory. */
export async function checkDisk(home: string): Promise<Check> {
  let directory = home;
  while (!existsSync(directory)) directory = dirname(directory);
  const { bavail, bsize } = await statfs(directory);
  const freeMib = Math.floor((bavail * bsize) / MIB);
  const detail = `${freeMib} MiB free for ${home}`;
  if (freeMib >= SMALL_MIB) return { name: "disk", status: "ok", detail };
  const hint = "Free some space, or set SANDPIPER_HOME to a directory on a larger disk.";
  return { name: "disk", status: "warning", detail, hint };
}
