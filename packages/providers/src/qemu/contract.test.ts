import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testRoot } from "../guest/testing/test-root.ts";
import { crashMachine, tracesOf } from "../host/testing/machine-traces.ts";
import { QemuProvider } from "./provider.ts";
import { createQemuFixture, type QemuFixture, TEMPLATE_TIMEOUT_MS } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

const rootfs = await testRoot();
let fixture: QemuFixture;
beforeAll(async () => {
  fixture = await createQemuFixture();
  await (await fixture.create()).destroy();
}, TEMPLATE_TIMEOUT_MS);
afterAll(() => fixture[Symbol.asyncDispose]());

describeProvider("qemu", () => fixture.provider, {
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
  leftovers: (_provider, id) => tracesOf(id, fixture.stateDirectory),
  makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
  traces: [/^process /, /^\/sys\/fs\/cgroup\//, /\/qemu\/instances\//],
  programs: {
    start: (options) => startHostProgram({ fixture, ...options }),
    next: () => new QemuProvider({ stateDirectory: fixture.stateDirectory }),
  },
});
