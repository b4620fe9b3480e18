import { PROTOCOL_GENERATION } from "@sandpiper/protocol";
import type { Handlers } from "./agent.ts";

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

  async "system.quiesce"(agent) {
    // The answers to earlier calls leave first, as those of an agent do.
    for (let turn = 0; turn < 8; turn++) await undefined;
    agent.isQuiesced = true;
    return {};
  },

  "system.thaw"(agent, { epoch }) {
    agent.epoch = epoch ?? agent.epoch;
    agent.thaw();
    return {};
  },
};
