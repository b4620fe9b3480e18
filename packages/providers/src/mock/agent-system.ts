import { SandboxError } from "@sandpiper/core";
import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { Handlers } from "./agent.ts";

/** The echo service, the only one in a mock. */
const ECHO_PORT = 7;

export const systemHandlers: Handlers = {
  ping: () => ({ pong: true }),

  hello(agent) {
    agent.thaw();
    return {
      generation: PROTOCOL_GENERATION,
      version: "0.0.0-mock",
      boot_id: agent.bootId,
      epoch: agent.epoch,
      methods: [],
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
    processes: 1 + [...agent.processes.values()].filter(({ state }) => state.status === undefined).length,
    uptime_ms: agent.clock.monotonicMs(),
  }),

  "system.quiesce"(agent) {
    agent.isQuiesced = true;
    return {};
  },

  "system.thaw"(agent, { epoch }) {
    agent.epoch = epoch ?? agent.epoch;
    agent.thaw();
    return {};
  },

  async "port.dial"(_agent, { port, path, window }, call) {
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
