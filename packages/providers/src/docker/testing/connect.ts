import type Docker from "dockerode";
import { Engine } from "../engine/engine.ts";
import type { Dockerd } from "./dockerd.ts";
import { importTestImage } from "./test-image.ts";

export function connectTo(dockerd: Pick<Dockerd, "url">): Promise<Engine> {
  return Engine.connect({ url: new URL(dockerd.url), origin: "a test", tls: undefined });
}

/** Starts a container that runs until it is killed. */
export async function startSleeper(engine: Engine, HostConfig: Docker.HostConfig = {}): Promise<Docker.Container> {
  const Image = await importTestImage(engine, { variant: "tiny" });
  const options = { Image, Cmd: ["sleep", "600"], StopSignal: "SIGKILL", HostConfig };
  const container = await engine.docker.createContainer(options);
  await container.start();
  return container;
}

export async function removeContainers({ docker }: Engine): Promise<void> {
  for (const { Id } of await docker.listContainers({ all: true }))
    await docker.getContainer(Id).remove({ force: true });
}
