import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { QemuState } from "../host.ts";

const FILE = "cgroup";

/** The path of an instance's cgroup: the one of its id, or the one in which its machine was prepared. */
export async function cgroupOfInstance(host: QemuState, id: SandboxId): Promise<string> {
  const name = await readFile(join(host.machineDirectory(id), FILE), "utf8").catch(() => id);
  return host.cgroupPath(name);
}

/**
 * Records the cgroup in the machine's directory, because moving a running process to another cgroup takes many
 * milliseconds.
 */
export async function noteCgroup(directory: string, name: string): Promise<void> {
  await writeFile(join(directory, FILE), name, { mode: 0o600 });
}
