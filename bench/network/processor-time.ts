import { readFile } from "node:fs/promises";
import { listProcesses, processesNaming } from "../processes.ts";

/** The kernel counts processor time in hundredths of a second. */
const MS_PER_TICK = 10;

/** Milliseconds of processor time that processes with these marks, and their descendants, have used so far. */
export async function processorTimeMs(marks: readonly string[]): Promise<number> {
  const all = await listProcesses();
  const ids = new Set(marks.flatMap((mark) => processesNaming(mark, all)).map(({ id }) => id));
  const times = await Promise.all([...ids].map(timeOf));
  return times.reduce((sum, time) => sum + time, 0);
}

/** With that of its children that have ended. */
async function timeOf(id: number): Promise<number> {
  const stat = await readFile(`/proc/${id}/stat`, "utf8").catch(() => "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK;
}
