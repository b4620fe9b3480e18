import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";
import type { QemuState } from "../host.ts";

const FILE = "cgroup";

/** The path of the cgroup that an instance is in: that of its id, or the one that its machine was started ahead in. */
export async function cgroupOfInstance(host: QemuState, id: SandboxId): Promise<string> {
  const name = await readFile(join(host.machineDirectory(id), FILE), "utf8").catch(() => id);
  return host.cgroupPath(name);
}

/** Notes it in a machine's directory, which becomes an instance's: to move a running process takes the kernel many milliseconds. */
export async function noteCgroup(directory: string, name: string): Promise<void> {
  await writeFile(join(directory, FILE), name, { mode: 0o600 });
}
