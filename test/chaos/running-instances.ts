import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** With cgroup version 1, any hierarchy that holds the instances' cgroups. */
const ROOT = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"].find((path) => existsSync(join(path, "cgroup.procs"))) ?? "";
const NAME = /^sandpiper-([0-9a-f-]{36})-([0-9a-f]{8})$/;

/** The places where each sandbox's agent runs, as the kernel reports them, independent of the nodes' records. */
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
 * gVisor runs each address space of its guest in a process without a command line, whose parent is another such process.
 * A prepared sandbox has a kernel and its helpers but no such pair; a saved or killed one has no process at all.
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
    // The cgroup has been removed since it was listed.
    return [];
  }
}

/** Undefined when the process has exited. */
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
