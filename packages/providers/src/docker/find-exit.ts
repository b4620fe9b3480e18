import type { InstanceExit, InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { wasStopped } from "./container/stop-mark.ts";
import type { DockerHost } from "./host.ts";

export interface EndedContainer {
  readonly spec: InstanceSpec;
  /** What the engine knows of it; undefined when it is not there any more. */
  readonly state: Docker.ContainerInspectInfo["State"] | undefined;
  /** What its agent said last. */
  readonly lastWords: string;
  /** It was found to have ended when the engine came back. */
  readonly wasEngineAway: boolean;
}

/** Why a container is not running any more. */
export async function findExit(host: DockerHost, ended: EndedContainer): Promise<InstanceExit> {
  const { spec, state, lastWords, wasEngineAway } = ended;
  if (await host.store.isRemoved(spec.id)) return { reason: "destroyed", message: "it was removed by its id" };
  if (state === undefined || state.Status === "removing") {
    return { reason: "crashed", message: "its container was removed from the engine by somebody else" };
  }
  if (state.OOMKilled && state.ExitCode !== 0) {
    return { reason: "out_of_memory", message: `its limit is ${spec.memoryMib} MiB` };
  }
  const how = `its container ended with exit code ${state.ExitCode}`;
  if (wasStopped(host, spec.id)) return { reason: "crashed", message: "its container was stopped" };
  const why = [wasEngineAway ? "while the engine was away" : "", state.Error, lastWords.trim()].filter(Boolean);
  return { reason: "crashed", message: [how, ...why].join("; ") };
}
