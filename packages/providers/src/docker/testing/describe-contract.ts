import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EngineFixture } from "./fixture.ts";
import { crashContainer, settleTraces, tracesOf } from "./traces.ts";

export function describeContract(title: string, fixture: EngineFixture): void {
  describeProvider(title, () => fixture.provider, {
    framework: { describe, it, beforeAll, afterAll, expect },
    capabilities: {
      isolation: "container",
      checkpoint: "filesystem",
      limits: { memory: true, cpu: true, processes: true, disk: false },
      supportsAdopt: true,
      supportsUsers: true,
      supportsContainers: true,
      network: "redirected",
    },
    crash: (_provider, id) => crashContainer(id, fixture),
    leftovers: (_provider, id) => tracesOf(id, fixture),
    makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
    traces: [/^container /, /^volume sandpiper-data-/, /^entry /],
    programs: {
      start: (options) => fixture.startProgram(options),
      next: () => fixture.newProvider(),
      settle: (id) => settleTraces(() => tracesOf(id, fixture)),
    },
  });
}
