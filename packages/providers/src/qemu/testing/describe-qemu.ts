import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { SandboxConfigOptions } from "@sandpiper/core";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QemuProvider } from "../provider.ts";
import { createQemuFixture, type QemuFixture } from "./fixture.ts";
import { startHostProgram } from "./start-host-program.ts";
import { testRoot } from "./test-root.ts";
import { crashMachine, tracesOf } from "./traces.ts";

/** The contract of all providers, for machines of one kind. */
export async function describeQemu(name: string, kind: SandboxConfigOptions = {}): Promise<void> {
  const rootfs = await testRoot();
  let fixture: QemuFixture;
  beforeAll(async () => {
    fixture = await createQemuFixture();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  describeProvider(name, () => fixture.provider, {
    framework: { describe, it, beforeAll, afterAll, expect },
    capabilities: {
      isolation: "vm",
      checkpoint: "memory",
      limits: { memory: true, cpu: true, processes: true, disk: true },
      supportsAdopt: true,
      supportsUsers: true,
      supportsContainers: false,
    },
    config: { rootfs, memoryMib: 192, diskMib: 64, ...kind },
    crash: (_provider, id) => crashMachine(id),
    leftovers: (_provider, id) => tracesOf(id, fixture.stateDirectory),
    makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
    orphan: async (config) => {
      const program = startHostProgram({ fixture, config });
      const { id } = await program.ready();
      await program.kill();
      return { provider: new QemuProvider({ stateDirectory: fixture.stateDirectory }), id };
    },
  });
}
