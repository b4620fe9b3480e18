import { isSandboxId, type SandboxId } from "@sandpiper/protocol";
import type { Engine } from "../engine/engine.ts";
import { label } from "../engine/labels.ts";

/** A sandbox's container in the engine's list. */
export interface ListedContainer {
  readonly id: SandboxId;
  readonly createdAt: Date;
  readonly isRunning: boolean;
}

/** The states in which a container has processes. */
const RUNNING = new Set(["running", "paused", "restarting"]);

export async function listContainers(
  engine: Engine,
  home: string,
  signal?: AbortSignal,
): Promise<ReadonlyMap<SandboxId, ListedContainer>> {
  const filters = { label: [label.sandbox, `${label.home}=${home}`] };
  const options = { all: true, filters, ...(signal === undefined ? {} : { abortSignal: signal }) };
  const found = await engine.call("list containers", (docker) => docker.listContainers(options));
  const listed = found.flatMap(({ Labels, State, Created }) => {
    const id = Labels[label.sandbox] ?? "";
    if (!isSandboxId(id)) return [];
    return [{ id, createdAt: new Date(Created * 1000), isRunning: RUNNING.has(State) }];
  });
  return new Map(listed.map((container) => [container.id, container]));
}
