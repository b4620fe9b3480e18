import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { describeProvider, rejection, type TestFramework } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { containerName } from "../../packages/providers/src/docker/container/inspect-container.ts";
import { connectTo } from "../../packages/providers/src/docker/testing/connect.ts";
import { createDockerFixture } from "../../packages/providers/src/docker/testing/fixture.ts";
import { importTestImage } from "../../packages/providers/src/docker/testing/test-image.ts";
import {
  crashContainer,
  settleTraces,
  tracesOf,
  tracesOfAll,
} from "../../packages/providers/src/docker/testing/traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import type { VmDockerProvider } from "../../packages/providers/src/vm-docker/provider.ts";
import type { OrphanVm } from "../../packages/providers/src/vm-docker/vm/vm-driver.ts";
import { hostVmDockerProvider } from "./host-vm-driver.ts";
import { VmDockerHome, type VmDockerParts } from "./vm-docker-home.ts";

const PROJECT = "shop";
/** For one test in a machine: without KVM, QEMU emulates the machine and a container takes long to start. */
const MACHINE_TEST_MS = 180_000;

const capabilities = {
  isolation: "vm",
  checkpoint: "filesystem",
  limits: { memory: true, cpu: true, processes: true, disk: false },
  supportsAdopt: true,
  supportsUsers: true,
  supportsContainers: true,
  network: "redirected",
} as const;

const fixture = await shared(createDockerFixture());

function createProvider(orphans?: readonly OrphanVm[]): VmDockerProvider {
  return hostVmDockerProvider(fixture, { orphans });
}

describeProvider("vm-docker", () => createProvider(), {
  framework: { describe, it, beforeAll, afterAll, expect },
  capabilities,
  config: { container: { project: PROJECT } },
  crash: (_provider, id) => crashContainer(id, fixture),
  leftovers: (_provider, id) => tracesOf(id, fixture),
  makeDirectory: () => mkdtemp(join(fixture.stateDirectory, "checkpoint-")),
  programs: {
    start: (options) => fixture.startProgram(options),
    next: () => createProvider([{ id: "host", projectId: PROJECT, isRunning: true }]),
    settle: (id) => settleTraces(() => tracesOf(id, fixture)),
  },
});

describe("a sandbox in a project's machine", () => {
  it("keeps its machine in use until it is removed, also after a failed create and adopt with its id", async () => {
    const provider = createProvider();
    const config = { container: { project: PROJECT } };
    const sandbox = await Sandbox.create(provider, config);
    const { id } = sandbox;
    expect(await rejection(Sandbox.create(provider, config, { id }))).toMatchObject({ code: "already_exists" });
    expect(await rejection(provider.adopt(id))).toMatchObject({ reason: "instance_owned" });
    expect(await provider.machines.list()).toMatchObject([{ state: "ready", sandboxes: [id] }]);
    expect(await provider.containers.get(id)).toMatchObject({ state: "running" });
    await sandbox.destroy();
    expect(await provider.machines.list()).toMatchObject([{ state: "ready", sandboxes: [] }]);
  });

  it("appears in one event stream with the sandboxes of all machines", async () => {
    const provider = createProvider();
    const ended = new AbortController();
    const kinds: string[] = [];
    const watching = (async () => {
      for await (const { kind } of provider.containers.watch(ended.signal)) kinds.push(kind);
    })();
    const sandbox = await Sandbox.create(provider, { container: { project: PROJECT } });
    await sandbox.destroy();
    await expect.poll(() => kinds).toContain("removed");
    expect(kinds).toContain("running");
    ended.abort();
    await watching;
  });

  it("runs the image's own command as a service, and cannot keep its volumes", async () => {
    const entrypoint = ["/bin/sh", "-c"];
    const command = ["echo served; exec sleep 600"];
    const image = await importTestImage(fixture.engine, { name: "sandpiper-test:service", entrypoint, command });
    const provider = createProvider();
    const container = { project: PROJECT, image, service: {}, labels: { team: "a" } };
    await using sandbox = await Sandbox.create(provider, { container });
    const service = await sandbox.attach("service");
    for await (const { bytes } of service.output) if (new TextDecoder().decode(bytes).includes("served")) break;
    const { Config } = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();
    expect(Config.Labels).toMatchObject({ team: "a" });
    expect("kept" in provider.containers).toBe(false);
  });

  it("shares caches only with sandboxes of its project", async () => {
    const provider = createProvider();
    const caches = [{ name: "npm", path: "/root/.npm" }];
    await using sandbox = await Sandbox.create(provider, { container: { project: PROJECT, caches } });
    expect(await provider.containers.listCaches()).toMatchObject([
      { project: PROJECT, name: "npm", usedBy: [sandbox.id] },
    ]);
    expect(await rejection(provider.containers.clearCache({ project: "other", name: "npm" }))).toMatchObject({
      reason: "no_such_cache",
    });
    await sandbox.destroy();
    await provider.containers.clearCache({ project: PROJECT, name: "npm" });
    expect(await provider.containers.listCaches()).toEqual([]);
  });
});

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
  }, MACHINE_TEST_MS);
  afterAll(() => home[Symbol.asyncDispose](), MACHINE_TEST_MS);
  const engine = async () => connectTo({ url: (await parts.vms.getOrCreateVm(PROJECT, "test")).engineUrl });
  const patient = (title: string, body: () => Promise<void>) => it(title, body, MACHINE_TEST_MS);
  const framework: TestFramework = {
    describe,
    it: Object.assign(patient, { skip: it.skip }),
    beforeAll: (body) => beforeAll(body, MACHINE_TEST_MS),
    afterAll: (body) => afterAll(body, MACHINE_TEST_MS),
    expect,
  };

  describeProvider("vm-docker in a machine", () => parts.provider, {
    framework,
    capabilities,
    config: { memoryMib: 128, container: { project: PROJECT, image: "sandpiper-test:latest" } },
    crash: async (_provider, id) => void (await (await engine()).docker.getContainer(containerName(id)).kill()),
    leftovers: async (_provider, id) => (await tracesOfAll(await engine())).filter((trace) => trace.includes(id)),
    makeDirectory: () => mkdtemp(join(home.home, "checkpoint-")),
    programs: { skipped: "test/node/vm-docker.test.ts kills programs in a real machine" },
  });
}
