import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceEntry } from "../host/instance-entry.ts";
import { inspectContainer } from "./container/inspect-container.ts";
import { reachableAddresses } from "./container/reachable-addresses.ts";
import type { DockerHost } from "./host.ts";
import { DockerInstance } from "./instance.ts";
import { holdInstance, isInstanceHeld, releaseInstance } from "./running-instances.ts";

/** Takes over a container whose program has ended, or one of this program's own that had ended and was started again. */
export async function adoptInstance(host: DockerHost, id: SandboxId): Promise<DockerInstance> {
  const directory = host.store.directory(id);
  // Not even a claim may be tried: who holds it here and is about to adopt it would take a claim of this program for its own.
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
    const what = found === undefined ? "is not there" : "has ended";
    throw new SandboxError("gone", {
      reason: "instance_ended",
      message: `instance ${spec.id} cannot be adopted: its container ${what}`,
      hint: "start its container, or remove what is left of it and create a new one",
    });
  }
  const container = host.engine.docker.getContainer(found.Id);
  // Its program died in the middle of a checkpoint.
  if (found.State.Paused) await host.engine.call(`unpause container ${found.Id}`, () => container.unpause());
  return new DockerInstance(host, { spec, container, isStarted: true, addresses: reachableAddresses(host, found) });
}

async function findOwn({ store }: DockerHost, id: SandboxId): Promise<InstanceEntry | undefined> {
  const [entry, own] = await Promise.all([store.read(id), store.owner()]);
  const isOwn = entry?.owner.pid === own.pid && entry.owner.startTicks === own.startTicks;
  return isOwn && entry.owner.bootId === own.bootId ? entry : undefined;
}
