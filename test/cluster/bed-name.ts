import { readFileSync } from "node:fs";

const PREFIX = "sandpiper-bed-";
const PATTERN = /^(sandpiper-bed-(\d+)-(\d+)-\d+)(?:-|$)/;
let beds = 0;

/** The name prefix of everything in one bed. It distinguishes a killed test's leftovers from a running test's bed. */
export function newBedName(): { readonly name: string; readonly number: number } {
  const number = beds++;
  return { name: `${PREFIX}${process.pid}-${startTicks(process.pid)}-${number}`, number };
}

/** The bed that a namespace or a directory belongs to, if the process that created it is gone. */
export function abandonedBed(name: string): string | undefined {
  const [, bed, pid, ticks] = PATTERN.exec(name) ?? [];
  return startTicks(Number(pid)) === ticks ? undefined : bed;
}

/** The kernel reuses process ids; together with its start time an id is unique. */
function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name, in parentheses, may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
