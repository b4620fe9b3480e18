import type { InstanceSpec } from "@sandpiper/core";
import type Docker from "dockerode";
import { undoAfter } from "../host/undo-after.ts";
import { containerConfig } from "./container/container-config.ts";
import { reachableAddresses } from "./container/reachable-addresses.ts";
import type { Engine } from "./engine/engine.ts";
import type { DockerHost } from "./host.ts";
import type { EngineImage } from "./image/image.ts";
import { DockerInstance } from "./instance.ts";
import { undoInstance } from "./remove-instance.ts";
import { mountsOf } from "./storage/mounts.ts";
import { makeVolumes } from "./storage/volumes.ts";
import { cloneWorkspace } from "./workspace/workspace.ts";

export interface LaunchOptions {
  readonly spec: InstanceSpec;
  readonly image: EngineImage;
  readonly signal: AbortSignal;
  /** Called with the container before it is started. */
  readonly onCreated?: ((container: Docker.Container) => Promise<void>) | undefined;
}

/**
 * Makes and starts a container for a spec that has an entry already. On failure nothing is left, the entry included; volumes
 * that were there before stay.
 */
export async function launchInstance(host: DockerHost, options: LaunchOptions): Promise<DockerInstance> {
  const { spec, signal } = options;
  let made: readonly string[] = [];
  let instance: DockerInstance | undefined;
  try {
    instance = await host.boots.run(async () => {
      made = await makeVolumes(host.engine, spec, { home: host.home, signal });
      return await start(host, options);
    }, signal);
    // Outside of its turn, since it takes as long as the repository is large.
    await cloneWorkspace(host.engine, spec, { container: instance.containerId, signal });
    return instance;
  } catch (error) {
    instance?.abandon();
    return await undoAfter(error, spec.id, () => undoInstance(host, spec.id, made));
  }
}

async function start(host: DockerHost, { spec, image, signal, onCreated }: LaunchOptions): Promise<DockerInstance> {
  const { engine, home, paths, runtime, agentVolume, agentStreams } = host;
  // Between the calls only: one that is aborted may still have its effect, after everything was cleared away.
  signal.throwIfAborted();
  const mounts = await mountsOf(spec, { agentVolume: await agentVolume.make(), home, paths });
  const config = containerConfig({ spec, image, mounts, home, runtime, channel: agentStreams.channel });
  const container = await engine.call(`make a container for sandbox ${spec.id}`, (docker) =>
    docker.createContainer(config),
  );
  signal.throwIfAborted();
  await agentVolume.fill(container, image.id);
  await onCreated?.(container);
  signal.throwIfAborted();
  const stream = await agentStreams.openEarly(container);
  const instance = new DockerInstance(host, { spec, container, stream, isStarted: false });
  try {
    await engine.call(`start the container of sandbox ${spec.id}`, () => container.start());
    signal.throwIfAborted();
    instance.begin();
    if (spec.container?.ports?.length) instance.addresses = reachableAddresses(host, await inspect(engine, container));
    return instance;
  } catch (error) {
    agentVolume.distrust();
    instance.abandon();
    throw error;
  }
}

function inspect(engine: Engine, container: Docker.Container): Promise<Docker.ContainerInspectInfo> {
  return engine.call(`look at container ${container.id}`, () => container.inspect());
}
