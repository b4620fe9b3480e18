import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxId } from "@sandpiper/protocol";
import { containerName } from "../container/inspect-container.ts";
import type { EngineFixture } from "./fixture.ts";

/** Everything on the engine and in the state directory that has the id of a sandbox. */
export async function tracesOf(id: SandboxId, { engine, stateDirectory }: EngineFixture): Promise<string[]> {
  const all = await tracesOfAll(engine);
  const entries = await readdir(join(stateDirectory, "docker/instances")).catch(() => []);
  return [...all, ...entries.map((name) => `entry ${name}`)].filter((trace) => trace.includes(id));
}

/** Everything of Sandpiper on an engine, except the shared agent volume; sorted, as engines list images in any order. */
export async function tracesOfAll({ docker }: EngineFixture["engine"]): Promise<string[]> {
  const containers = await docker.listContainers({ all: true });
  const { Volumes } = await docker.listVolumes();
  const images = await docker.listImages({ all: true });
  return [
    ...containers.map(({ Names, Labels }) => `container ${Names.join()} ${JSON.stringify(Labels)}`),
    ...Volumes.map(({ Name }) => `volume ${Name}`).filter((name) => !name.includes("sandpiper-agent-")),
    ...images.flatMap(({ RepoTags, Labels }) => [...(RepoTags ?? []), JSON.stringify(Labels)]),
  ].toSorted();
}

/** Kills a container from outside, like a fault. */
export async function crashContainer(id: SandboxId, { engine }: EngineFixture): Promise<void> {
  const container = engine.docker.getContainer(containerName(id));
  // Podman runs in its own pid namespace, so its pids are invalid here.
  if (engine.info.isPodman) return void (await container.kill());
  const { State } = await container.inspect();
  process.kill(State.Pid, "SIGKILL");
}

/** The engine may still work on the last request of a killed program; nothing tells when it is done. */
const QUIET_MS = 300;

/** Waits until the engine changes nothing for a while. */
export async function settleTraces(find: () => Promise<readonly string[]>): Promise<void> {
  let before = await find();
  for (;;) {
    await sleep(QUIET_MS);
    const now = await find();
    if (now.join() === before.join()) return;
    before = now;
  }
}
