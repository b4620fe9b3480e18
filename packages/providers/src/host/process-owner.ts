import { readFile } from "node:fs/promises";

/** One run of one program. The process id alone is not unique: it is reused, and starts over after a reboot. */
export interface ProcessOwner {
  readonly pid: number;
  /** Clock ticks between boot and the start of the process. */
  readonly startTicks: number;
  readonly bootId: string;
}

export async function currentOwner(): Promise<ProcessOwner> {
  const stat = await readProcessStat(process.pid);
  if (stat === undefined) throw new Error("/proc does not show this process; mount it: mount -t proc proc /proc");
  return { pid: process.pid, startTicks: stat.startTicks, bootId: await readBootId() };
}

export async function isOwnerAlive(owner: ProcessOwner): Promise<boolean> {
  if (owner.bootId !== (await readBootId())) return false;
  const stat = await readProcessStat(owner.pid);
  return stat !== undefined && stat.startTicks === owner.startTicks && !stat.hasEnded;
}

interface ProcessStat {
  readonly startTicks: number;
  /** A zombie. */
  readonly hasEnded: boolean;
}

async function readProcessStat(pid: number): Promise<ProcessStat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  // The second field is the program's name in parentheses, which may contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "X"] = fields;
  return { startTicks: Number(fields[19]), hasEnded: state === "Z" || state === "X" };
}

/** Changes with every boot of the host. */
export async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}
