import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";

/** In the environment of an instance's agent and, through it, of everything that the agent starts. */
export const INSTANCE_MARK = "SANDPIPER_LOCAL_INSTANCE";

const ROUNDS = 100;
const ROUND_MS = 20;

/** Ends what an agent left behind that could not end it itself. */
export async function killMarkedProcesses(id: SandboxId): Promise<void> {
  let left: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    left = await findMarkedProcesses(id);
    if (left.length === 0) return;
    for (const pid of left) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself since the list was read.
      }
    }
    await sleep(ROUND_MS);
  }
  throw new SandboxError("unavailable", {
    reason: "processes_left",
    message: `Processes of instance ${id} do not end: ${left.join(", ")}.`,
    hint: "Look at them with `ps`, and try again.",
  });
}

async function findMarkedProcesses(id: SandboxId): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const marked = await Promise.all(pids.map((pid) => hasMark(pid, `${INSTANCE_MARK}=${id}`)));
  return pids.filter((_, index) => marked[index]).map(Number);
}

/** A process of another user cannot be read, and cannot be ours; one that has ended shows no environment. */
async function hasMark(pid: string, mark: string): Promise<boolean> {
  const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
  return environment.split("\0").includes(mark);
}
