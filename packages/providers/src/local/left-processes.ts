import { readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import { killAll } from "../host/cgroup-files.ts";
import { isWithin } from "../host/is-within.ts";

const ROUNDS = 100;
const ROUND_MS = 20;

/** Kills the processes of an agent that was killed. They have the instance's home as HOME or as working directory. */
export async function killLeftProcesses(home: string): Promise<void> {
  let left: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    left = await findProcesses(home);
    if (left.length === 0) return;
    killAll(left);
    await sleep(ROUND_MS);
  }
  throw new SandboxError("processes_left", {
    message: `processes with the home ${home} do not end: ${left.join(", ")}`,
    hint: "check them with `ps`, and try again",
  });
}

async function findProcesses(home: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const matches = await Promise.all(pids.map((pid) => belongsTo(home, pid)));
  return pids.filter((_, index) => matches[index]).map(Number);
}

/** Processes of other users are unreadable and not ours; ended ones have no content. */
async function belongsTo(home: string, pid: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  if (environment.split("\0").includes(`HOME=${Buffer.from(home).toString("latin1")}`)) return true;
  const directory = await readlink(`/proc/${pid}/cwd`).catch(() => "");
  return directory !== "" && isWithin(home, directory);
}
