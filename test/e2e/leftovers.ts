import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The processes, mounts, cgroups and directories that belong to sandboxes of a home directory. */
export function findLeftovers(home: string, sandboxIds: readonly string[] = []): string[] {
  const instances = ["gvisor", "local"].flatMap((provider) => listOrNone(join(home, provider, "instances")));
  const marks = [home, ...instances, ...sandboxIds];
  const isOurs = (text: string) => marks.some((mark) => text.includes(mark));
  return [
    ...instances.map((name) => `directory ${name}`),
    ...commandLines().filter(isOurs),
    ...readFileSync("/proc/self/mountinfo", "utf8").split("\n").filter(isOurs),
    ...cgroups("/sys/fs/cgroup").filter(isOurs),
  ];
}

function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map((pid) => {
      try {
        return `process ${pid}: ${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")}`;
      } catch {
        return "";
      }
    });
}

function cgroups(directory: string): string[] {
  const below = listOrNone(directory, true).map((name) => join(directory, name));
  return below.flatMap((path) => [path, ...cgroups(path)]);
}

function listOrNone(directory: string, onlyDirectories = false): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => !onlyDirectories || entry.isDirectory()).map(({ name }) => name);
  } catch {
    return [];
  }
}
