import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testRoot } from "../guest/testing/test-root.ts";
import { crashMachine, tracesOf } from "../host/testing/machine-traces.ts";
import { FirecrackerProvider } from "./provider.ts";
import { createDoubleFixture, type FirecrackerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

const rootfs = await testRoot();
let fixture: FirecrackerFixture;
beforeAll(async () => {
  fixture = await createDoubleFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

describeProvider("firecracker (through its double)", () => fixture.provider, {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities: {
    isolation: "vm",
    checkpoint: "memory",
    limits: { memory: true, cpu: true, processes: true, disk: true },
    supportsAdopt: true,
    supportsUsers: true,
    supportsContainers: false,
  },
  config: { rootfs, memoryMib: 192, diskMib: 64 },
  crash: (_provider, id) => crashMachine(id),
  leftovers: (_provider, id) => tracesOf(id, fixture.options.stateDirectory),
  makeDirectory: () => mkdtemp(join(fixture.options.stateDirectory, "checkpoint-")),
  traces: [/^process /, /^\/sys\/fs\/cgroup\//, /\/firecracker\/instances\//],
  programs: {
    start: (options) => startHostProgram({ fixture, ...options }),
    next: () => new FirecrackerProvider(fixture.options),
  },
});
