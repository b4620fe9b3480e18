import type { Duplex } from "node:stream";
import type Docker from "dockerode";
import type { Engine } from "../engine/engine.ts";
import { attach } from "./attach.ts";
import { RELAY_CHANNEL, relay } from "./relay.ts";

/** The way to the agents in an engine's containers. */
export interface AgentStreams {
  /** What an agent is told of its channel. */
  readonly channel: string;
  /** They are the agent's own: one caller after the other has the same, and the agent's last words are there. */
  readonly isAgents: boolean;
  /** The streams of a container that is about to be started, where they are there before its agent. */
  openEarly(container: Docker.Container): Promise<Duplex | undefined>;
  /** Those of one that runs. */
  open(container: Docker.Container): Promise<Duplex>;
}

/**
 * The standard streams of the container, which Docker keeps open for as long as it runs. Podman closes its input when the first
 * one who was attached goes away, so there each caller has a relay of its own.
 */
export function agentStreams(engine: Engine): AgentStreams {
  return engine.info.isPodman
    ? {
        channel: RELAY_CHANNEL,
        isAgents: false,
        openEarly: async () => undefined,
        open: (container) => relay(engine, container),
      }
    : {
        channel: "stdio",
        isAgents: true,
        openEarly: (container) => attach(engine, container),
        open: (container) => attach(engine, container),
      };
}
