import { SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import type { InstanceEntry } from "../host/instance-entry.ts";
import type { DockerHost } from "./host.ts";
import { inspectContainer } from "./inspect-container.ts";
import { DockerInstance } from "./instance.ts";
import { findAddresses } from "./launch.ts";

/** Takes over a container whose program has ended. */
export async function adoptInstance(host: DockerHost, id: SandboxId): Promise<DockerInstance> {
  const { spec } = (await findOwn(host, id)) ?? (await host.store.claim(id));
  const found = await inspectContainer(host, id);
  if (found?.State.Running !== true) {
    throw new SandboxError("gone", {
      reason: "instance_ended",
      message: `instance ${id} cannot be adopted: its container ${found === undefined ? "is not there" : "has ended"}`,
      hint: "start its container, or remove what is left of it and create a new one",
    });
  }
  const container = host.engine.docker.getContainer(found.Id);
  const instance = new DockerInstance(host, { spec, container });
  try {
    // Its program died in the middle of a checkpoint.
    if (found.State.Paused) await host.engine.call(`unpause container ${found.Id}`, () => container.unpause());
    instance.addresses = await findAddresses(host, container);
    return instance;
  } catch (error) {
    instance.abandon();
    throw error;
  }
}

/** One that this program owns and whose end it has seen: its container may have been started again. */
async function findOwn({ store, running }: DockerHost, id: SandboxId): Promise<InstanceEntry | undefined> {
  if (running.has(id)) return undefined;
  const [entry, own] = await Promise.all([store.read(id), store.owner()]);
  const isOwn = entry?.owner.pid === own.pid && entry.owner.startTicks === own.startTicks;
  return isOwn && entry.owner.bootId === own.bootId ? entry : undefined;
}
