import { SandboxError } from "@sandpiper/core";
import type { ProcessResource, Sandbox } from "@sandpiper/sdk";
import { pick } from "./pick.ts";

/** The process that the user means by its id, the beginning of it, or its pid. */
export function pickProcess(text: string, processes: readonly ProcessResource[]): ProcessResource {
  // What ended may have had the same pid as what runs.
  const byPid = processes.filter(({ pid, isRunning }) => isRunning && String(pid) === text);
  if (byPid.length === 1) return byPid[0] as ProcessResource;
  return pick("process", text, processes);
}

/** The one that was started last. */
export function newestProcess(sandbox: Sandbox, processes: readonly ProcessResource[]): ProcessResource {
  const newest = processes.toSorted((a, b) => a.startedAt.localeCompare(b.startedAt)).at(-1);
  if (newest !== undefined) return newest;
  throw new SandboxError("not_found", {
    reason: "no_process",
    message: `sandbox ${sandbox.id} has no process whose output could be shown`,
    hint: `start one: sandpiper exec --detach ${sandbox.id.slice(0, 8)} -- CMD`,
  });
}
