import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";

/** Opens the standard streams of a container, which need not have been started yet. */
export async function attach(engine: Engine, container: Docker.Container): Promise<Duplex> {
  const stream = await engine.call(`attach to container ${container.id}`, ({ modem }) => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    // Never aborted: the signal would end the stream, too, whenever it is aborted later.
    modem.dial(request(container.id), (error, answer) => (error ? reject(error) : resolve(answer)));
    return promise;
  });
  // It may fail before anybody uses it, who then finds it destroyed.
  return (stream as Duplex).on("error", () => {});
}

/** With an empty body: the client library would send the options there as well, and Podman hands a body on as input. */
function request(id: string) {
  return {
    path: `/containers/${id}/attach?`,
    method: "POST",
    options: { _query: { stream: true, stdin: true, stdout: true, stderr: true } },
    file: Buffer.alloc(0),
    isStream: true,
    hijack: true,
    statusCodes: { 101: true, 200: true },
  };
}
