import type { ContainerExit, ContainerState } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { InstanceStore } from "../../host/instance-store.ts";
import { wasStopped } from "./stop-mark.ts";

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
