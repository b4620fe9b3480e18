import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GvisorProvider } from "./provider.ts";
import { createGvisorFixture, type GvisorFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";
import { crashSandbox, tracesOf } from "./testing/traces.ts";

let fixture: GvisorFixture;
beforeAll(async () => {
  fixture = await createGvisorFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

describeProvider("gvisor", () => fixture.provider, {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities: {
    isolation: "user_space_kernel",
    checkpoint: "memory",
    limits: { memory: true, cpu: true, processes: true, disk: true },
    supportsAdopt: true,
    supportsUsers: true,
    supportsContainers: false,
  },
  crash: (_provider, id) => crashSandbox(id),
  leftovers: (_provider, id) => tracesOf(id, fixture.stateDirectory),
  makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
  traces: [/^process /, /^\/sys\/fs\/cgroup\//, /\/gvisor\/instances\//, /\/gvisor\/root\//],
  programs: {
    start: (options) => startHostProgram({ ...fixture, ...options }),
    next: () => new GvisorProvider({ stateDirectory: fixture.stateDirectory }),
  },
});
