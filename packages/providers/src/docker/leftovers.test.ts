import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture } from "./testing/fixture.ts";
import { crashContainer, tracesOf, tracesOfAll } from "./testing/traces.ts";

/** Fifty take a minute on two cores. */
const MANY = Number(process.env["SANDPIPER_TEST_CONTAINERS"] ?? 15);

const fixture = await shared(createDockerFixture());

const traces = (id: SandboxId) => tracesOf(id, fixture);
const container = (id: SandboxId) => fixture.engine.docker.getContainer(containerName(id));

describe("the docker provider", () => {
  it.each<[string, (id: SandboxId) => Promise<unknown>, unknown]>([
    ["killed from outside, with its exit code", (id) => crashContainer(id, fixture), expect.stringContaining("137")],
    [
      "removed by hand",
      (id) => container(id).remove({ force: true }),
      "another client of the engine removed its container",
    ],
  ])("reports a container that was %s", async (_, end, message) => {
    const sandbox = await fixture.create();
    await end(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "crashed", message });
    expect(sandbox.state).toBe("failed");
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("leaves nothing of a sandbox that does not start, and reports why", async () => {
    const provider = fixture.newProvider({ runtime: "no-such-runtime" });
    const id = createSandboxId();
    await expect(Sandbox.create(provider, {}, { id })).rejects.toThrow(/no-such-runtime/);
    expect(await traces(id)).toEqual([]);
  });

  it(`leaves nothing of ${MANY} sandboxes that are created and destroyed at once`, async () => {
    const before = await tracesOfAll(fixture.engine);
    const create = () => Sandbox.create(fixture.provider, { memoryMib: 64 }, { connectTimeoutMs: 60_000 });
    const sandboxes = await Promise.all(Array.from({ length: MANY }, create));
    const answers = await Promise.all(sandboxes.map((sandbox, at) => sandbox.exec(`echo ${at}`)));
    expect(answers.map(({ stdout }) => stdout)).toEqual(sandboxes.map((_, at) => `${at}\n`));
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
    expect(await tracesOfAll(fixture.engine)).toEqual(before);
    expect(await readdir(join(fixture.stateDirectory, "docker/instances"))).toEqual([]);
    const networks = await fixture.engine.docker.listNetworks();
    expect(networks.map(({ Name }) => Name).toSorted()).toEqual(["host", "none"]);
  }, 300_000);
});

describe("the volumes of a sandbox", () => {
  it("are kept on request, and mounted again by the next instance of the same sandbox", async () => {
    const sandbox = await fixture.create();
    const { id } = sandbox;
    await sandbox.exec("echo kept > /.data/kept; echo lost > /tmp/lost");
    await sandbox.destroy({ keepsVolumes: true });
    expect(await traces(id)).toEqual([`volume sandpiper-data-${id}`]);
    const next = await Sandbox.create(fixture.provider, {}, { id });
    expect(await next.readTextFile("/.data/kept")).toBe("kept\n");
    await expect(next.readTextFile("/tmp/lost")).rejects.toMatchObject({ code: "not_found" });
    await next.destroy();
    expect(await traces(id)).toEqual([]);
  });

  it("survive an instance that does not start", async () => {
    const sandbox = await fixture.create();
    const { id } = sandbox;
    await sandbox.destroy({ keepsVolumes: true });
    await expect(Sandbox.create(fixture.newProvider({ runtime: "no-such-runtime" }), {}, { id })).rejects.toThrow();
    expect(await traces(id)).toEqual([`volume sandpiper-data-${id}`]);
    await fixture.provider.remove(id);
    expect(await traces(id)).toEqual([]);
  });
});

describe("a program that has destroyed its sandboxes and stopped watching", () => {
  it("exits, because no timer and no connection is left", async () => {
    const at = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
    const options = { stateDirectory: fixture.stateDirectory, engineUrl: fixture.dockerd.url, image: fixture.image };
    const code = `
      const { Sandbox } = await import(${at("../../../core/src/index.ts")});
      const { DockerProvider } = await import(${at("provider.ts")});
      const provider = new DockerProvider(${JSON.stringify(options)});
      const abort = new AbortController();
      const watch = provider.containers.watch(abort.signal);
      const sandbox = await Sandbox.create(provider);
      await watch.next();
      await sandbox.exec("true");
      await sandbox.destroy();
      abort.abort();
      await watch.return();
      console.log("done");`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said = text(child.stdout);
    const [exitCode] = await once(child, "exit", { signal: AbortSignal.timeout(30_000) }).catch((error: unknown) => {
      child.kill("SIGKILL");
      throw error;
    });
    expect([exitCode, await said]).toEqual([0, "done\n"]);
  }, 60_000);
});

describe("reconciliation with the engine", () => {
  it("finds and removes a container without an entry", async () => {
    const sandbox = await fixture.create();
    const { id } = sandbox;
    const other = await moveEntryAway(id);
    expect(await find(id)).toMatchObject({ isRunning: false, isOrphan: true });
    await expect(fixture.provider.adopt(id)).rejects.toMatchObject({ code: "not_found" });
    await fixture.provider.remove(id);
    expect(await traces(id)).toEqual([]);
    await other[Symbol.asyncDispose]();
    await sandbox.destroy();
  });

  it("finds and removes an entry without a container", async () => {
    const program = fixture.startProgram();
    const { id } = await program.ready();
    await program.kill();
    await container(id).remove({ force: true });
    expect(await find(id)).toMatchObject({ isRunning: false, isOrphan: true });
    await fixture.provider.remove(id);
    expect(await traces(id)).toEqual([]);
  });
});

async function find(id: SandboxId) {
  return (await fixture.provider.list()).find((record) => record.id === id);
}

async function moveEntryAway(id: SandboxId): Promise<AsyncDisposable> {
  const aside = join(fixture.stateDirectory, `aside-${id}`);
  await rename(join(fixture.stateDirectory, "docker/instances", id), aside);
  return { [Symbol.asyncDispose]: () => rm(aside, { recursive: true, force: true }) };
}
