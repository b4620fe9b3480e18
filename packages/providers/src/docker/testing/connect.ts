import { Engine } from "../engine/engine.ts";
import type { Dockerd } from "./dockerd.ts";

export function connectTo(dockerd: Pick<Dockerd, "url">): Promise<Engine> {
  return Engine.connect({ url: new URL(dockerd.url), origin: "a test", tls: undefined });
}

export async function removeContainers({ docker }: Engine): Promise<void> {
  for (const { Id } of await docker.listContainers({ all: true }))
    await docker.getContainer(Id).remove({ force: true });
}
