import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { describeProvider, type TestFramework } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { containerName } from "../../packages/providers/src/docker/container/inspect-container.ts";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { tracesOfAll } from "../../packages/providers/src/docker/testing/traces.ts";
import { VmDockerHome, type VmDockerParts } from "./vm-docker-home.ts";

const PROJECT = "shop";
/** For one test: without KVM, QEMU emulates the machine and a container takes long to start. */
const TIMEOUT_MS = 180_000;

if (process.env["SANDPIPER_TEST_MACHINES"] === "all") describeInMachine();
else
  it.skip(
    "provider vm-docker passes its contract in a real machine (skipped: it takes minutes; SANDPIPER_TEST_MACHINES=all runs it)",
  );

function describeInMachine(): void {
  let home: VmDockerHome;
  let parts: VmDockerParts;
  beforeAll(async () => {
    home = await VmDockerHome.create("base");
    parts = home.open();
  }, TIMEOUT_MS);
  afterAll(() => home[Symbol.asyncDispose](), TIMEOUT_MS);
  const engine = async () => connectTo({ url: (await parts.vms.getOrCreateVm(PROJECT, "test")).engineUrl });
  const patient = (title: string, body: () => Promise<void>) => it(title, body, TIMEOUT_MS);
  const framework: TestFramework = {
    describe,
    it: Object.assign(patient, { skip: it.skip }),
    beforeAll: (body) => beforeAll(body, TIMEOUT_MS),
    afterAll: (body) => afterAll(body, TIMEOUT_MS),
    expect,
  };

  describeProvider("vm-docker in a machine", () => parts.provider, {
    framework,
    capabilities: {
      isolation: "vm",
      checkpoint: "filesystem",
      limits: { memory: true, cpu: true, processes: true, disk: false },
      supportsAdopt: true,
      supportsUsers: true,
      supportsContainers: true,
    },
    config: { memoryMib: 128, container: { project: PROJECT, image: "sandpiper-test:latest" } },
    crash: async (_provider, id) => void (await (await engine()).docker.getContainer(containerName(id)).kill()),
    leftovers: async (_provider, id) => (await tracesOfAll(await engine())).filter((trace) => trace.includes(id)),
    makeDirectory: () => mkdtemp(join(home.home, "checkpoint-")),
    programs: { skipped: "test/node/vm-docker.test.ts kills programs in a real machine" },
  });
}
