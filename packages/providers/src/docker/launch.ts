import type { Instance, InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { undoAfter } from "../host/undo-after.ts";
import { writeEarlierProcesses } from "./checkpoint/earlier-processes.ts";
import { containerConfig } from "./container/container-config.ts";
import { addressesOf, startError } from "./container/ports.ts";
import { serviceOf } from "./container/service.ts";
import { containerTargets } from "./engine/kill-containers-target.ts";
import type { DockerHost } from "./host.ts";
import type { EngineImage } from "./image/image.ts";
import { DockerInstance } from "./instance.ts";
import { undoInstance } from "./remove-instance.ts";
import { mountsOf } from "./storage/mounts.ts";
import { createVolumes } from "./storage/volumes.ts";
import { copyWorkspace } from "./workspace/copy-workspace.ts";
import { cloneWorkspace } from "./workspace/workspace.ts";

export interface LaunchOptions {
  readonly spec: InstanceSpec;
  readonly image: EngineImage;
  readonly signal: AbortSignal;
  /** Called with the container before its start. */
  readonly onCreated?: ((container: Docker.Container) => Promise<void>) | undefined;
  readonly earlierProcesses?: Instance["earlierProcesses"];
}

/**
 * Creates and starts a container for a spec that already has an entry. On failure everything is removed, the entry included,
 * except volumes that existed before.
 */
export async function launchInstance(host: DockerHost, options: LaunchOptions): Promise<DockerInstance> {
  const { spec, signal } = options;
  let created: readonly string[] = [];
  let instance: DockerInstance | undefined;
  try {
    instance = await host.boots.run(async () => {
      created = await createVolumes(host.engine, spec, { home: host.home, signal });
      return await start(host, options);
    }, signal);
    // Outside the limit on concurrent starts: a large repository takes long.
    const workspace = { container: instance.containerId, signal };
    await cloneWorkspace(host.engine, spec, workspace);
    // A restored container has the workspace of its checkpoint, even if that is empty.
    const isRestored = options.onCreated !== undefined;
    if (!isRestored) await copyWorkspace(host.engine, spec, { ...workspace, read: host.readWorkspace });
    return instance;
  } catch (error) {
    instance?.abandon();
    return await undoAfter(error, spec.id, () => undoInstance(host, spec.id, created));
  }
}

async function start(host: DockerHost, options: LaunchOptions): Promise<DockerInstance> {
  const { spec, image, signal, onCreated, earlierProcesses } = options;
  const { engine, home, paths, runtime, agentVolume, agentStreams } = host;
  // Aborts only between calls: an aborted call could still take effect after the clean-up.
  signal.throwIfAborted();
  const mounts = await mountsOf(spec, { agentVolume: await agentVolume.create(), home, paths });
  const config = containerConfig({ spec, image, mounts, home, runtime, channel: agentStreams.channel });
  const container = await engine.call(`create a container for sandbox ${spec.id}`, (docker) =>
    docker.createContainer(config),
  );
  signal.throwIfAborted();
  await host.store.guard(spec.id, containerTargets(engine, container.id));
  if (earlierProcesses !== undefined) await writeEarlierProcesses(host.store.directory(spec.id), earlierProcesses);
  await agentVolume.fill(container, image.id);
  await onCreated?.(container);
  signal.throwIfAborted();
  const stream = await agentStreams.openEarly(container);
  const service = serviceOf(spec, config.Labels ?? {});
  const instance = new DockerInstance(host, { spec, container, stream, isStarted: false, service, earlierProcesses });
  try {
    await engine.call(`start the container of sandbox ${spec.id}`, () => container.start());
    signal.throwIfAborted();
    instance.begin();
    if (spec.container?.ports?.length) {
      const found = await engine.call(`inspect container ${container.id}`, () => container.inspect());
      instance.addresses = addressesOf(found, engine.endpoint.url);
    }
    return instance;
  } catch (error) {
    agentVolume.recheck();
    instance.abandon();
    throw startError(spec, error);
  }
}
