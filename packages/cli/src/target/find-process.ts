import { SandboxError } from "@sandpiper/protocol/error";
import type { ProcessResource, Sandbox } from "@sandpiper/sdk";
import { pick } from "./pick.ts";

/** Resolves a process ID, the beginning of one, or a PID. */
export function pickProcess(text: string, processes: readonly ProcessResource[]): ProcessResource {
  // A process that has ended may have had the same PID.
  const byPid = processes.filter(({ pid, isRunning }) => isRunning && String(pid) === text);
  if (byPid.length === 1) return byPid[0] as ProcessResource;
  return pick("process", text, processes);
}

/** The one that was started last. */
export function newestProcess(sandbox: Sandbox, processes: readonly ProcessResource[]): ProcessResource {
  const newest = processes.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)).at(-1);
  if (newest !== undefined) return newest;
  throw new SandboxError("no_such_process", {
    message: `sandbox ${sandbox.id} has no processes, so there are no logs`,
    hint: `start one with "sandpiper exec --detach ${sandbox.id.slice(0, 8)} -- CMD"`,
  });
}
