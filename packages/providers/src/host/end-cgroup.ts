import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import type { Cgroups } from "./cgroups.ts";

const ROUNDS = 200;
const ROUND_MS = 10;

/** Kills all processes in a cgroup and removes it. Repeats the kill, because a process may have started another. */
export async function endCgroup(cgroups: Pick<Cgroups, "kill" | "processes" | "remove">, path: string): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    if (await cgroups.remove(path)) return;
    await cgroups.kill(path);
    await sleep(ROUND_MS);
  }
  const left = await cgroups.processes(path);
  throw new SandboxError("cgroup_busy", {
    message: `the cgroup ${path} could not be removed; these processes do not end: ${left.join(", ") || "none seen"}`,
    hint: "they may be waiting for a disk: check them with `ps` and try again",
    details: { path, processes: left },
  });
}
