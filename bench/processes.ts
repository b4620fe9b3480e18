import { readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** Pause before the idle memory of instances is read. */
const SETTLE_MS = 2000;

export interface ProcessEntry {
  readonly id: number;
  readonly parentId: number;
  readonly argv: readonly string[];
  /** argv as one string, for searching. */
  readonly commandLine: string;
  readonly executable: string;
}

export async function listProcesses(): Promise<ProcessEntry[]> {
  const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const entries = await Promise.all(ids.map(readProcess));
  return entries.filter((entry) => entry !== undefined);
}

/** The processes whose command line names the instance, and their descendants. */
export function processesNaming(instanceId: string, all: readonly ProcessEntry[]): ProcessEntry[] {
  const found = new Map<number, ProcessEntry>();
  let added = all.filter((one) => one.id !== process.pid && one.commandLine.includes(instanceId));
  while (added.length > 0) {
    for (const entry of added) found.set(entry.id, entry);
    added = all.filter((one) => found.has(one.parentId) && !found.has(one.id));
  }
  return [...found.values()];
}

/** Memory in megabytes (PSS): each process counts its share of shared pages. */
export async function proportionalMemory(processes: readonly ProcessEntry[]): Promise<number> {
  const sizesKib = await Promise.all(
    processes.map(async ({ id }) => {
      // A process that has just ended uses no memory.
      const rollup = await readFile(`/proc/${id}/smaps_rollup`, "utf8").catch(() => "");
      return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0);
    }),
  );
  const total = sizesKib.reduce((sum, size) => sum + size, 0);
  if (!(total > 0))
    throw new Error(`no memory figures for ${processes.map((one) => one.id).join(", ") || "no process"}`);
  return (total * 1024) / 1e6;
}

/** Megabytes (PSS) of each idle instance. */
export async function settledMemory(instanceIds: readonly string[]): Promise<number[]> {
  await sleep(SETTLE_MS);
  const all = await listProcesses();
  return await Promise.all(instanceIds.map((id) => proportionalMemory(processesNaming(id, all))));
}

/** Resident memory of a process in megabytes. */
export async function residentMb(processId: number): Promise<number> {
  const status = await readFile(`/proc/${processId}/status`, "utf8");
  return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
}

async function readProcess(name: string): Promise<ProcessEntry | undefined> {
  try {
    const stat = await readFile(`/proc/${name}/stat`, "utf8");
    const argv = (await readFile(`/proc/${name}/cmdline`, "utf8")).split("\0").slice(0, -1);
    // A kernel thread, or a process that has ended, has none.
    const executable = await readlink(`/proc/${name}/exe`).catch(() => "");
    // The program's name, in parentheses, can contain spaces and parentheses.
    const parentId = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    return { id: Number(name), parentId, argv, commandLine: argv.join(" "), executable };
  } catch {
    return undefined;
  }
}
