import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";
import { crashContainer, tracesOf, tracesOfAll } from "./testing/traces.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

const traces = (id: SandboxId) => tracesOf(id, fixture);

describe("nothing is left", () => {
  it("of a sandbox that was destroyed, though there was much of it before", async () => {
    const sandbox = await fixture.create();
    const before = await traces(sandbox.id);
    for (const kind of [/^container /, /^volume sandpiper-data-/, /^entry /]) {
      expect(before.filter((trace) => kind.test(trace))).not.toEqual([]);
    }
    await Promise.all([sandbox.destroy(), sandbox.destroy()]);
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose processes were killed from outside", async () => {
    const sandbox = await fixture.create();
    await crashContainer(sandbox.id, fixture);
    expect(await sandbox.closed).toMatchObject({ reason: "crashed", message: expect.stringContaining("137") });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox whose container somebody removed by hand, and it says so", async () => {
    const sandbox = await fixture.create();
    await fixture.engine.docker.getContainer(containerName(sandbox.id)).remove({ force: true });
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: "another client of the engine removed its container",
    });
    expect(sandbox.state).toBe("failed");
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox that was removed by its id, and its owner learns that it was meant", async () => {
    const sandbox = await fixture.create();
    await fixture.newProvider().remove(sandbox.id);
    expect(await sandbox.closed).toMatchObject({ reason: "destroyed" });
    await sandbox.destroy();
    expect(await traces(sandbox.id)).toEqual([]);
  });

  it("of a sandbox that did not start, and the error says why", async () => {
    const provider = fixture.newProvider({ runtime: "no-such-runtime" });
    const id = createSandboxId();
    await expect(Sandbox.create(provider, {}, { id })).rejects.toThrow(/no-such-runtime/);
    expect(await traces(id)).toEqual([]);
  });

  it.each([1, 20, 60, 100, 150, 200, 300])("of a sandbox whose creation was canceled after %i ms", async (delayMs) => {
    const id = createSandboxId();
    const signal = AbortSignal.timeout(delayMs);
    const created = await Sandbox.create(fixture.provider, {}, { id, signal }).catch(() => undefined);
    await created?.destroy();
    expect(await traces(id)).toEqual([]);
  });

  it("when an unknown id is removed", async () => {
    await fixture.provider.remove(createSandboxId());
    expect(await readdir(join(fixture.stateDirectory, "docker/instances"))).toEqual([]);
  });

  it("of fifty sandboxes that were made and destroyed at once", async () => {
    const before = await tracesOfAll(fixture.engine);
    const create = () => Sandbox.create(fixture.provider, { memoryMib: 64 }, { connectTimeoutMs: 60_000 });
    const sandboxes = await Promise.all(Array.from({ length: 50 }, create));
    const answers = await Promise.all(sandboxes.map((sandbox, at) => sandbox.exec(`echo ${at}`)));
    expect(answers.map(({ stdout }) => stdout)).toEqual(sandboxes.map((_, at) => `${at}\n`));
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
    expect(await tracesOfAll(fixture.engine)).toEqual(before);
    expect(await readdir(join(fixture.stateDirectory, "docker/instances"))).toEqual([]);
    const networks = await fixture.engine.docker.listNetworks();
    expect(networks.map(({ Name }) => Name).toSorted()).toEqual(["host", "none"]);
  }, 300_000);
});

describe("volumes", () => {
  it("are there again for the next instance of the same sandbox when they were to be kept", async () => {
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

  it("that were kept outlive an instance that did not start", async () => {
    const sandbox = await fixture.create();
    const { id } = sandbox;
    await sandbox.destroy({ keepsVolumes: true });
    await expect(Sandbox.create(fixture.newProvider({ runtime: "no-such-runtime" }), {}, { id })).rejects.toThrow();
    expect(await traces(id)).toEqual([`volume sandpiper-data-${id}`]);
    await fixture.provider.remove(id);
    expect(await traces(id)).toEqual([]);
  });
});

describe("a program that is killed", () => {
  it("leaves sandboxes that its successor finds and removes", async () => {
    const program = startHostProgram(fixture);
    const { id } = await program.ready();
    expect(await find(id)).toMatchObject({ isRunning: true, isOrphan: false });
    await program.kill();
    expect(await find(id)).toMatchObject({ isRunning: true, isOrphan: true });
    await fixture.provider.remove(id);
    expect(await find(id)).toBeUndefined();
    expect(await traces(id)).toEqual([]);
  });

  it.each([0, 30, 60, 90, 120, 160, 200, 250, 300])(
    "%i ms into a creation leaves nothing that its successor cannot find",
    async (delayMs) => {
      const program = startHostProgram(fixture);
      const id = await program.creating();
      await sleep(delayMs);
      await program.kill();
      // The engine may still be at what it was asked for last.
      await expect.poll(() => settledTraces(id)).not.toBeUndefined();
      const found = await find(id);
      if (found !== undefined) await fixture.provider.remove(id);
      expect(await traces(id), `found: ${found !== undefined}`).toEqual([]);
    },
  );
});

describe("a program that has destroyed its sandboxes and watches no more", () => {
  it("ends by itself: no timer and no connection is left", async () => {
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

describe("what only one side knows of", () => {
  it("is found and removed: a container without an entry", async () => {
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

  it("is found and removed: an entry without a container", async () => {
    const program = startHostProgram(fixture);
    const { id } = await program.ready();
    await program.kill();
    await fixture.engine.docker.getContainer(containerName(id)).remove({ force: true });
    expect(await find(id)).toMatchObject({ isRunning: false, isOrphan: true });
    await fixture.provider.remove(id);
    expect(await traces(id)).toEqual([]);
  });
});

async function find(id: SandboxId) {
  return (await fixture.provider.list()).find((record) => record.id === id);
}

/** Undefined while the engine is still changing something. */
async function settledTraces(id: SandboxId): Promise<string[] | undefined> {
  const before = await traces(id);
  await sleep(300);
  const after = await traces(id);
  return before.join() === after.join() ? after : undefined;
}

async function moveEntryAway(id: SandboxId): Promise<AsyncDisposable> {
  const aside = join(fixture.stateDirectory, `aside-${id}`);
  await rename(join(fixture.stateDirectory, "docker/instances", id), aside);
  return { [Symbol.asyncDispose]: () => rm(aside, { recursive: true, force: true }) };
}
