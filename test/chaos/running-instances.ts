import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** With cgroup version 1, any hierarchy that holds the instances' cgroups. */
const ROOT = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"].find((path) => existsSync(join(path, "cgroup.procs"))) ?? "";
const NAME = /^sandpiper-([0-9a-f-]{36})-([0-9a-f]{8})$/;

/** A container engine of the test, with the directory of its files. */
export interface WatchedEngine {
  readonly directory: string;
  readonly name: string;
}

/** The places where each sandbox's agent runs, as the kernel reports them, independent of the nodes' records. */
export function runningInstances(
  places: readonly string[],
  engines: readonly WatchedEngine[] = [],
): Map<string, string[]> {
  const running = new Map<string, string[]>();
  const add = (id: string, place: string) => void running.set(id, [...(running.get(id) ?? []), place]);
  for (const { id, place, cgroup } of instanceCgroups()) {
    if (places.includes(place) && (hasGuest(cgroup) || hasMachine(cgroup))) add(id, place);
  }
  for (const engine of engines) {
    for (const { id, pids } of engineContainers(engine)) if (pids.length > 0) add(id, engine.name);
  }
  return running;
}

/** The processes of an instance in gVisor or QEMU, on any node. */
export function cgroupProcesses(id: string): readonly number[] {
  return instanceCgroups()
    .filter((found) => found.id === id)
    .flatMap(({ cgroup }) => processesOf(cgroup).map(Number));
}

/** The running containers of sandboxes. A prepared container does not exist before its checkpoint is there. */
export function engineContainers({ directory, name }: WatchedEngine): { id: string; pids: readonly number[] }[] {
  const parent = join(ROOT, name);
  return namesIn(parent).flatMap((container) => {
    const id = sandboxOf(directory, container);
    return id === undefined ? [] : [{ id, pids: processesOf(join(parent, container)).map(Number) }];
  });
}

/** Whether a process is an address space of a gVisor guest. */
export function isGuestProcess(pid: number): boolean {
  const parent = parentOf(String(pid));
  return parent !== undefined && isNameless(String(pid)) && isNameless(parent);
}

const sandboxes = new Map<string, string>();

/** Reads the engine's file, because its API does not answer within a look. */
function sandboxOf(directory: string, container: string): string | undefined {
  const known = sandboxes.get(container);
  if (known !== undefined || !/^[0-9a-f]{64}$/.test(container)) return known;
  try {
    const { Name } = JSON.parse(readFileSync(join(directory, "data/containers", container, "config.v2.json"), "utf8"));
    const [, id] = /^\/sandpiper-([0-9a-f-]{36})$/.exec(Name) ?? [];
    if (id !== undefined) sandboxes.set(container, id);
    return id;
  } catch {
    return undefined;
  }
}

function instanceCgroups() {
  return namesIn(ROOT).flatMap((name) => {
    const [, id, place] = NAME.exec(name) ?? [];
    return id === undefined || place === undefined ? [] : [{ id, place, cgroup: join(ROOT, name) }];
  });
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

/** A prepared machine has no QEMU before its checkpoint is there. */
function hasMachine(cgroup: string): boolean {
  return processesOf(cgroup).some((pid) => commandOf(pid).startsWith("qemu-system") && parentOf(pid) !== undefined);
}

export function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
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
