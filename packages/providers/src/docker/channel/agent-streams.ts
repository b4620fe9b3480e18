import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { AGENT_PROGRAM } from "../storage/agent-volume.ts";

/** An abstract socket: no file of the image conflicts with it, and no process inside can remove it. */
const RELAY_CHANNEL = "unix:@sandpiper";

/** The connections to the agents in an engine's containers. */
export interface AgentStreams {
  /** The agent's --channel argument. */
  readonly channel: string;
  /** Every connection carries the agent's own standard streams, its standard error included. */
  readonly isStdio: boolean;
  /** Connects to a container before it starts, where the engine supports that. */
  openEarly(container: Docker.Container): Promise<Duplex | undefined>;
  /** Connects to a running container. */
  open(container: Docker.Container): Promise<Duplex>;
}

/**
 * Docker keeps a container's standard streams open for as long as it runs. Podman closes standard input when the first
 * client detaches, so there each connection gets its own relay.
 */
export function agentStreams(engine: Engine): AgentStreams {
  const toContainer = (container: Docker.Container) => attach(engine, container);
  return engine.info.isPodman
    ? {
        channel: RELAY_CHANNEL,
        isStdio: false,
        openEarly: async () => undefined,
        open: (container) => relay(engine, container),
      }
    : { channel: "stdio", isStdio: true, openEarly: toContainer, open: toContainer };
}

/** Opens the standard streams of a container, which may not have started yet. */
async function attach(engine: Engine, container: Docker.Container): Promise<Duplex> {
  const request = {
    path: `/containers/${container.id}/attach?`,
    method: "POST",
    options: { _query: { stream: true, stdin: true, stdout: true, stderr: true } },
    // Without a body the client library would send the options as one, and Podman forwards a body as input.
    file: Buffer.alloc(0),
    isStream: true,
    hijack: true,
    statusCodes: { 101: true, 200: true },
  };
  // Takes no signal: a later abort would end the stream, too.
  return ignoringErrors((await engine.dial(`attach to container ${container.id}`, request)) as Duplex);
}

/** Runs a program in the container that forwards bytes between its standard streams and the agent. */
async function relay(engine: Engine, container: Docker.Container): Promise<Duplex> {
  const stream = await engine.call(`connect to the agent of container ${container.id}`, async () => {
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
  return ignoringErrors(stream);
}

/** A stream that fails before its first use is found destroyed by its user. */
function ignoringErrors(stream: Duplex): Duplex {
  return stream.on("error", () => {});
}
