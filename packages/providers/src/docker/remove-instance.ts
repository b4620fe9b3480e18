import { setTimeout as sleep } from "node:timers/promises";
import { type DestroyOptions, SandboxError } from "@sandpiper/core";
import type { SandboxId } from "@sandpiper/protocol";
import { removeImagesOf } from "./checkpoint/checkpoint-image.ts";
import { inspectContainer } from "./container/inspect-container.ts";
import type { DockerHost } from "./host.ts";
import { removeNamed, removeVolumes } from "./storage/volumes.ts";

/** An engine that already removes a container for another client answers with a conflict until it is done. */
const REMOVAL_INTERVAL_MS = 50;
const REMOVAL_ROUNDS = 200;

/**
 * Removes every trace of an instance in any state. The entry goes last, so that an interrupted removal can be found and
 * repeated.
 */
export async function removeInstance(host: DockerHost, id: SandboxId, options: DestroyOptions = {}): Promise<void> {
  await remove(host, id, async () => {
    if (options.keepsVolumes !== true) await removeVolumes(host.engine, id, host.home);
  });
}

/** Removes an instance whose creation failed, with only those volumes that it created. */
export async function undoInstance(host: DockerHost, id: SandboxId, createdVolumes: readonly string[]): Promise<void> {
  await remove(host, id, () => removeNamed(host.engine, createdVolumes));
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
        // `v` also removes the anonymous volumes that the image declares.
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
  throw new SandboxError("container_stuck", {
    message: `could not remove the container of sandbox ${id}: the engine is still removing it`,
    hint: "try again; if this repeats, restart the engine",
  });
}
