import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { AGENT_PROGRAM } from "../storage/agent-volume.ts";

/** A socket's name, which is nowhere in the filesystem: no image is in its way, and nobody inside can remove it. */
export const RELAY_CHANNEL = "unix:@sandpiper";

/** Runs a program in a container that carries bytes to and from its agent, and opens that program's standard streams. */
export async function relay(engine: Engine, container: Docker.Container): Promise<Duplex> {
  const stream = await engine.call(`reach the agent of container ${container.id}`, async () => {
    const exec = await container.exec({
      Cmd: [AGENT_PROGRAM, "--relay", "--channel", RELAY_CHANNEL],
      User: "0:0",
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      Tty: false,
    });
    return await exec.start({ hijack: true, stdin: true });
  });
  // It may fail before anybody uses it, who then finds it destroyed.
  return stream.on("error", () => {});
}
