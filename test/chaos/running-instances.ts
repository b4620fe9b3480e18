import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** In version 1 any hierarchy will do that instances have a cgroup in. */
const ROOT = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"].find((path) => existsSync(join(path, "cgroup.procs"))) ?? "";
const NAME = /^sandpiper-([0-9a-f-]{36})-([0-9a-f]{8})$/;

/** In which of these places an agent runs, by sandbox. Asks the kernel alone: whatever nodes believe does not count. */
export function runningInstances(places: readonly string[]): Map<string, string[]> {
  const running = new Map<string, string[]>();
  for (const name of readdirSync(ROOT)) {
    const [, id, place] = NAME.exec(name) ?? [];
    if (id === undefined || place === undefined || !places.includes(place) || !hasGuest(join(ROOT, name))) continue;
    running.set(id, [...(running.get(id) ?? []), place]);
  }
  return running;
}

/**
 * gVisor runs each address space of its guest in a process without a command line, which is a child of another such one, a child
 * of its kernel. A sandbox that is being prepared has a kernel and its helpers, and no such pair; one that was saved or killed
 * has no process at all.
 */
function hasGuest(cgroup: string): boolean {
  const parents = new Map<string, string>();
  for (const pid of processesOf(cgroup)) {
    const parent = parentOf(pid);
    if (parent !== undefined) parents.set(pid, parent);
  }
  return [...parents].some(([pid, parent]) => parents.has(parent) && isNameless(parent) && isNameless(pid));
}

function processesOf(cgroup: string): string[] {
  try {
    return readFileSync(join(cgroup, "cgroup.procs"), "utf8").split("\n").filter(Boolean);
  } catch {
    // It was removed this very moment.
    return [];
  }
}

/** Undefined: it has ended. */
function parentOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The program's name, in parentheses, may itself contain spaces and parentheses.
    const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : parent;
  } catch {
    return undefined;
  }
}

function isNameless(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`).length === 0;
  } catch {
    return false;
  }
}
