import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sharedDirectory } from "../host/testing/shared.ts";
import { startHostProgram } from "../host/testing/start-host-program.ts";
import { LocalProvider } from "./provider.ts";
import { HOST_PROGRAM, processesOf, tracesOf } from "./testing/traces.ts";

const stateDirectory = sharedDirectory("local");

describeProvider("local", () => new LocalProvider({ stateDirectory }), {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities: {
    isolation: "none",
    checkpoint: "none",
    limits: { memory: false, cpu: false, processes: false, disk: false },
    supportsAdopt: false,
    supportsUsers: false,
    supportsContainers: false,
    network: "host",
  },
  crash: async (_provider, id) => {
    const [agent] = await processesOf(id);
    if (agent === undefined) throw new Error(`instance ${id} has no agent`);
    process.kill(agent, "SIGKILL");
  },
  leftovers: (_provider, id) => tracesOf(id, stateDirectory),
  traces: [/^process /, /^entry /],
  programs: {
    start: (options) => startHostProgram(HOST_PROGRAM, { stateDirectory }, options),
    next: () => new LocalProvider({ stateDirectory }),
  },
});
