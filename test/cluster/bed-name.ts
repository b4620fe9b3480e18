import { readFileSync } from "node:fs";

const PREFIX = "sandpiper-bed-";
const PATTERN = /^(sandpiper-bed-(\d+)-(\d+)-\d+)(?:-|$)/;
let beds = 0;

/** What everything of one bed is named for, so that what a killed test left can be told from what another one uses. */
export function newBedName(): { readonly name: string; readonly number: number } {
  const number = beds++;
  return { name: `${PREFIX}${process.pid}-${startTicks(process.pid)}-${number}`, number };
}

/** The bed that a namespace or a directory belongs to, if the process that made it is gone. */
export function abandonedBed(name: string): string | undefined {
  const [, bed, pid, ticks] = PATTERN.exec(name) ?? [];
  return startTicks(Number(pid)) === ticks ? undefined : bed;
}

/** Process ids are used again; together with the moment of its start one is unique. */
function startTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name, in parentheses, may itself contain spaces and parentheses.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
