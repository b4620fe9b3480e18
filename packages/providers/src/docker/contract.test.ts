import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";
import { crashContainer, tracesOf } from "./testing/traces.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

describeProvider("docker", () => fixture.provider, {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities: {
    isolation: "container",
    checkpoint: "filesystem",
    limits: { memory: true, cpu: true, processes: true, disk: false },
    supportsAdopt: true,
    supportsUsers: true,
    supportsContainers: true,
  },
  crash: (_provider, id) => crashContainer(id, fixture),
  leftovers: (_provider, id) => tracesOf(id, fixture),
  makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
  orphan: async (config) => {
    const program = startHostProgram(fixture, { config });
    const { id } = await program.ready();
    await program.kill();
    return { provider: fixture.newProvider(), id };
  },
});
