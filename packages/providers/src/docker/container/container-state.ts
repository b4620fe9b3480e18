import type { ContainerExit, ContainerState } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type Docker from "dockerode";
import type { DockerHost } from "../host.ts";
import { wasStopped } from "./stop-mark.ts";

export interface FoundState {
  readonly state: ContainerState;
  readonly exit: ContainerExit | undefined;
  /** When it came to be so. */
  readonly at: Date;
}

/** What a container is doing, in the words of the port. One that ended by itself with an exit code has failed. */
export function containerState(host: DockerHost, id: SandboxId, found: Docker.ContainerInspectInfo): FoundState {
  const { Status, ExitCode, OOMKilled, StartedAt, FinishedAt } = found.State;
  if (Status === "created") return { state: "created", exit: undefined, at: new Date(found.Created) };
  if (found.State.Running) return { state: "running", exit: undefined, at: new Date(StartedAt) };
  const exit = { exitCode: ExitCode, isOutOfMemory: OOMKilled && ExitCode !== 0 };
  const state = ExitCode === 0 || wasStopped(host, id) ? "stopped" : "failed";
  return { state, exit, at: new Date(FinishedAt) };
}
