import { SandboxError } from "@sandpiper/core";
import { type AgentParams, PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { Handler } from "./agent.ts";

/** The echo service, the only one in a mock. */
const ECHO_PORT = 7;

type SystemMethod = "ping" | "hello" | "system.metrics" | "system.quiesce" | "system.thaw" | "port.dial";

export const systemHandlers: Readonly<Record<SystemMethod, Handler>> = {
  ping: () => ({ pong: true }),

  hello(agent) {
    agent.thaw();
    return {
      generation: PROTOCOL_GENERATION,
      version: "0.0.0-mock",
      boot_id: agent.bootId,
      epoch: agent.epoch,
      methods: agent.methods,
      languages: agent.languages,
      processes: [...agent.processes.values()].map((process) => process.info()),
    };
  },

  "system.metrics": (agent) => ({
    cpu_ms: 1,
    memory_used_bytes: 1024,
    memory_total_bytes: 1024 * 1024,
    disk_used_bytes: agent.files.list("/", 0).reduce((sum, { size }) => sum + size, 0),
    disk_total_bytes: 1024 * 1024 * 1024,
    // The agent counts as a process too.
    processes: 1 + [...agent.processes.values()].filter(({ status }) => status === undefined).length,
    uptime_ms: agent.clock.monotonicMs(),
  }),

  "system.quiesce"(agent) {
    agent.quiesce();
    return {};
  },

  "system.thaw"(agent, { epoch }: AgentParams<"system.thaw">) {
    agent.epoch = epoch ?? agent.epoch;
    agent.thaw();
    return {};
  },

  async "port.dial"(_agent, { port, path, window }: AgentParams<"port.dial">, call) {
    if (port !== ECHO_PORT) {
      const message = `nothing listens on ${port ?? path}`;
      throw new SandboxError("connection_refused", { message });
    }
    call.grant(window);
    let bytes = 0;
    for await (const chunk of call.uploads()) {
      bytes += chunk.length;
      await call.sendAll(chunk);
    }
    call.sendEnd();
    return { sent: bytes, received: bytes };
  },
};
