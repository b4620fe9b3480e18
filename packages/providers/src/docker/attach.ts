import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "./engine.ts";

/** Opens the standard streams of a container, which need not have been started yet. */
export async function attach(engine: Engine, container: Docker.Container): Promise<Duplex> {
  // Never aborted: the signal would end the stream, too, whenever it is aborted later.
  const options = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true };
  const stream = await engine.call(`attach to container ${container.id}`, () => container.attach(options));
  // It may fail before anybody uses it, who then finds it destroyed.
  return (stream as Duplex).on("error", () => {});
}
