import { setTimeout as sleep } from "node:timers/promises";
import { type DestroyOptions, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { removeImagesOf } from "./checkpoint/checkpoint-image.ts";
import { inspectContainer } from "./container/inspect-container.ts";
import type { DockerHost } from "./host.ts";
import { removeNamed, removeVolumes } from "./storage/volumes.ts";

/** An engine that removes a container already for somebody else says so at once, and takes a while. */
const REMOVAL_INTERVAL_MS = 50;
const REMOVAL_ROUNDS = 200;

/**
 * Removes every trace of an instance, in whatever state it is. Its entry goes last: while anything is left, it can be found
 * and removed again.
 */
export async function removeInstance(host: DockerHost, id: SandboxId, options: DestroyOptions = {}): Promise<void> {
  await remove(host, id, async () => {
    if (options.keepsVolumes !== true) await removeVolumes(host.engine, id, host.home);
  });
}

/** Of one that did not come to be: only those volumes go that were made for it. */
export async function undoInstance(host: DockerHost, id: SandboxId, madeVolumes: readonly string[]): Promise<void> {
  await remove(host, id, () => removeNamed(host.engine, madeVolumes));
}

async function remove(host: DockerHost, id: SandboxId, removeItsVolumes: () => Promise<void>): Promise<void> {
  const { engine, home, store } = host;
  await store.beginRemoval(id);
  await removeContainer(host, id);
  await Promise.all([removeItsVolumes(), removeImagesOf(engine, { id, home })]);
  await store.remove(id);
}

async function removeContainer(host: DockerHost, id: SandboxId): Promise<void> {
  for (let round = 0; round < REMOVAL_ROUNDS; round++) {
    const container = await inspectContainer(host, id);
    if (container === undefined) return;
    try {
      await host.engine.call(`remove container ${container.Name}`, (docker) =>
        // Its volumes without a name, which the image asked for, go with it.
        docker.getContainer(container.Id).remove({ force: true, v: true }),
      );
      return;
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      if (error.code === "not_found") return;
      if (error.code !== "conflict") throw error;
    }
    await sleep(REMOVAL_INTERVAL_MS);
  }
  throw new SandboxError("unavailable", {
    reason: "container_stuck",
    message: `the container of sandbox ${id} is still there: the engine is busy with removing it`,
    hint: "try again; if it stays, restart the engine",
  });
}
