import { Engine } from "../engine/engine.ts";
import type { Dockerd } from "./dockerd.ts";

export function connectTo(dockerd: Pick<Dockerd, "url">): Promise<Engine> {
  return Engine.connect({ url: new URL(dockerd.url), origin: "a test", tls: undefined });
}
