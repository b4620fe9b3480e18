import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SandboxId } from "@sandpiper/protocol";
import { containerName } from "../container-name.ts";
import type { EngineFixture } from "./engine-fixture.ts";

/** Everything on the engine and in the state that still bears the id of a sandbox. */
export async function tracesOf(id: SandboxId, { engine, stateDirectory }: EngineFixture): Promise<string[]> {
  const all = await tracesOfAll(engine);
  const entries = await readdir(join(stateDirectory, "docker/instances")).catch(() => []);
  return [...all, ...entries.map((name) => `entry ${name}`)].filter((trace) => trace.includes(id));
}

/** All that Sandpiper has on an engine, except what sandboxes share. */
export async function tracesOfAll({ docker }: EngineFixture["engine"]): Promise<string[]> {
  const containers = await docker.listContainers({ all: true });
  const { Volumes } = await docker.listVolumes();
  const images = await docker.listImages({ all: true });
  return [
    ...containers.map(({ Names, Labels }) => `container ${Names.join()} ${JSON.stringify(Labels)}`),
    ...Volumes.map(({ Name }) => `volume ${Name}`).filter((name) => !name.includes("sandpiper-agent-")),
    ...images.flatMap(({ RepoTags, Labels }) => [...(RepoTags ?? []), JSON.stringify(Labels)]),
  ];
}

/** Ends a container from outside, as a fault would. */
export async function crashContainer(id: SandboxId, { engine }: EngineFixture): Promise<void> {
  const container = engine.docker.getContainer(containerName(id));
  // Its processes have numbers of their own there, which are somebody else's here.
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
