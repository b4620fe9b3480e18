import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceEntry } from "../host/instance-entry.ts";
import { readEarlierProcesses } from "./checkpoint/earlier-processes.ts";
import { inspectContainer } from "./container/inspect-container.ts";
import { addressesOf } from "./container/ports.ts";
import { serviceOf } from "./container/service.ts";
import { containerTargets } from "./engine/kill-containers-target.ts";
import type { DockerHost } from "./host.ts";
import { DockerInstance, holdInstance, isInstanceHeld, releaseInstance } from "./instance.ts";

/** Adopts a container whose program has ended, or one of this program that ended and was started again. */
export async function adoptInstance(host: DockerHost, id: SandboxId): Promise<DockerInstance> {
  const directory = host.store.directory(id);
  // A claim would carry this program's identity, and a concurrent adoption in it would take the claim for its own.
  if (isInstanceHeld(directory)) return await host.store.refuse(id);
  const holder = {};
  holdInstance(directory, holder);
  try {
    return await adopt(host, (await findOwn(host, id)) ?? (await host.store.claim(id)));
  } finally {
    releaseInstance(directory, holder);
  }
}

async function adopt(host: DockerHost, { spec }: InstanceEntry): Promise<DockerInstance> {
  const found = await inspectContainer(host, spec.id);
  if (found?.State.Running !== true) {
    const what = found === undefined ? "does not exist" : "has ended";
    throw new SandboxError("instance_ended", {
      message: `cannot adopt instance ${spec.id}: its container ${what}`,
      hint: "start its container, or remove the sandbox and create a new one",
    });
  }
  const container = host.engine.docker.getContainer(found.Id);
  await host.store.guard(spec.id, containerTargets(host.engine, found.Id));
  // The earlier program died during a checkpoint.
  if (found.State.Paused) await host.engine.call(`unpause container ${found.Id}`, () => container.unpause());
  const addresses = addressesOf(found, host.engine.endpoint.url);
  const service = serviceOf(spec, found.Config.Labels);
  const earlierProcesses = await readEarlierProcesses(host.store.directory(spec.id));
  return new DockerInstance(host, { spec, container, isStarted: true, addresses, service, earlierProcesses });
}

async function findOwn({ store }: DockerHost, id: SandboxId): Promise<InstanceEntry | undefined> {
  const [entry, own] = await Promise.all([store.read(id), store.owner()]);
  const isOwn = entry?.owner.pid === own.pid && entry.owner.startTicks === own.startTicks;
  return isOwn && entry.owner.bootId === own.bootId ? entry : undefined;
}
