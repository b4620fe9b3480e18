import type { InstanceExit, InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { wasStopped } from "./container/stop-mark.ts";
import type { DockerHost } from "./host.ts";

export interface EndedContainer {
  readonly spec: InstanceSpec;
  /** The engine's state of the container; undefined when it was removed. */
  readonly state: Docker.ContainerInspectInfo["State"] | undefined;
  /** The end of the agent's standard error. */
  readonly stderrTail: string;
  /** The container was found ended when the engine came back. */
  readonly wasEngineAway: boolean;
}

/** Finds out why a container has ended. */
export async function findExit(host: DockerHost, ended: EndedContainer): Promise<InstanceExit> {
  const { spec, state, stderrTail, wasEngineAway } = ended;
  if (await host.store.isRemoved(spec.id)) return { reason: "destroyed", message: "it was removed by its id" };
  if (state === undefined || state.Status === "removing") {
    return { reason: "crashed", message: "another client of the engine removed its container" };
  }
  if (state.OOMKilled && state.ExitCode !== 0) {
    return { reason: "out_of_memory", message: `its limit is ${spec.memoryMib} MiB` };
  }
  const how = `its container ended with exit code ${state.ExitCode}`;
  if (wasStopped(host.store, spec.id)) return { reason: "crashed", message: "its container was stopped" };
  const why = [wasEngineAway ? "while the engine was down" : "", state.Error, stderrTail.trim()].filter(Boolean);
  return { reason: "crashed", message: [how, ...why].join("; ") };
}
