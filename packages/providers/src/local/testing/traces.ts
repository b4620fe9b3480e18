import { readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxId } from "@sandpiper/protocol";

export const HOST_PROGRAM = new URL("host-program.ts", import.meta.url);

/** Everything on this host that names the instance: processes by environment or directory, and files. */
export async function tracesOf(id: SandboxId, stateDirectory: string): Promise<string[]> {
  const files = await readdir(join(stateDirectory, "local/instances")).catch(() => []);
  return [
    ...(await processesOf(id)).map((pid) => `process ${pid}`),
    ...files.filter((name) => name.includes(id)).map((name) => `entry ${name}`),
  ];
}

/** The processes of an instance, the agent first. */
export async function processesOf(id: SandboxId): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
      const directory = await readlink(`/proc/${pid}/cwd`).catch(() => "");
      return environment.includes(id) || directory.includes(id) ? [pid] : [];
    }),
  );
  return found.flat().toSorted((one, other) => one - other);
}
