import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerExit, ContainerState } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { InstanceStore } from "../../host/instance-store.ts";

const STOP_MARK = "stopped";

export interface FoundState {
  readonly state: ContainerState;
  readonly exit: ContainerExit | undefined;
  /** When the container entered this state. */
  readonly at: Date;
}

/** Maps the engine's state to a container state. A container that exited non-zero without a stop has failed. */
export function containerState(store: InstanceStore, id: SandboxId, found: Docker.ContainerInspectInfo): FoundState {
  const { Status, ExitCode, OOMKilled, StartedAt, FinishedAt } = found.State;
  if (Status === "created") return { state: "created", exit: undefined, at: new Date(found.Created) };
  if (found.State.Running) return { state: "running", exit: undefined, at: new Date(StartedAt) };
  const exit = { exitCode: ExitCode, isOutOfMemory: OOMKilled && ExitCode !== 0 };
  const state = ExitCode === 0 || wasStopped(store, id) ? "stopped" : "failed";
  return { state, exit, at: new Date(FinishedAt) };
}

/** Records that a stop is intended, for every program of this home. */
export async function markStopped(store: InstanceStore, id: SandboxId): Promise<void> {
  await writeFile(stopMark(store, id), "").catch((error: unknown) => {
    // A container without an entry is only ever removed.
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  });
}

export async function unmarkStopped(store: InstanceStore, id: SandboxId): Promise<void> {
  await rm(stopMark(store, id), { force: true });
}

export function wasStopped(store: InstanceStore, id: SandboxId): boolean {
  return existsSync(stopMark(store, id));
}

function stopMark(store: InstanceStore, id: SandboxId): string {
  return join(store.directory(id), STOP_MARK);
}
