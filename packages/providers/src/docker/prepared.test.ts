import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterEach, describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture } from "./testing/fixture.ts";
import { tracesOfAll } from "./testing/traces.ts";

const fixture = await shared(createDockerFixture({ image: { user: "user" } }));
const before = await tracesOfAll(fixture.engine);
afterEach(async () => expect(await tracesOfAll(fixture.engine)).toEqual(before));

const container = (id: SandboxId) => fixture.engine.docker.getContainer(containerName(id));

/** Saves and stops a sandbox; returns the checkpoint's directory. */
async function save(sandbox: Sandbox): Promise<string> {
  const directory = await mkdtemp(join(fixture.stateDirectory, "checkpoint-"));
  await sandbox.checkpoint(directory, { keepsRunning: false });
  await sandbox.destroy();
  return directory;
}

async function restore(saved: Sandbox, directory: string, signal?: AbortSignal): Promise<Sandbox> {
  const { provider } = fixture;
  const prepared = await Sandbox.prepare(provider, saved.config, { id: saved.id });
  return await Sandbox.restore(provider, saved.config, { prepared, directory, createdAt: saved.createdAt, signal });
}

async function restored(config: SandboxConfigOptions, command: string): Promise<Sandbox> {
  const sandbox = await fixture.create(config);
  expect(await sandbox.exec(command)).toMatchObject({ exitCode: 0 });
  return await restore(sandbox, await save(sandbox));
}

describe("a restored container", () => {
  it("keeps its limits, user and environment", async () => {
    const config = { memoryMib: 96, vcpuCount: 0.5, maxProcesses: 50, env: { GREETING: "hello" } };
    await using sandbox = await restored(config, "true");
    expect((await sandbox.exec("id -un; echo $GREETING; pwd")).stdout).toBe("user\nhello\n/home/user\n");
    const { HostConfig, Config } = await container(sandbox.id).inspect();
    expect(HostConfig).toMatchObject({ Memory: 96 * 1024 * 1024, CpuQuota: 50_000, CapDrop: ["ALL"] });
    expect(JSON.stringify(Config)).not.toContain("hello");
  });

  it("keeps its volume with a read-only root", async () => {
    await using sandbox = await restored({ container: { isRootReadOnly: true } }, "echo kept > /.data/file");
    expect((await sandbox.exec("cat /.data/file; echo more >> /.data/file; touch /usr/no")).stdout).toBe("kept\n");
  });

  it("keeps directories writable for every user", async () => {
    await using sandbox = await restored({}, "mkdir -m 700 /.data/mine; echo kept > /.data/mine/file");
    expect((await sandbox.exec("cat /.data/mine/file; echo more > /.data/mine/more; touch /.data/new")).exitCode).toBe(
      0,
    );
    expect((await sandbox.exec("cat /.data/mine/file", { user: "nobody" })).exitCode).not.toBe(0);
  });
});

describe("a prepared container", () => {
  it("leaves nothing when its restore is aborted at any point", async () => {
    const sandbox = await fixture.create({});
    const directory = await save(sandbox);
    for (const delayMs of [0, 20, 100, 200, 300]) {
      const restoring = restore(sandbox, directory, AbortSignal.timeout(delayMs));
      await restoring.then(
        (done) => done.destroy(),
        () => {},
      );
      expect(await tracesOfAll(fixture.engine)).toEqual(before);
      expect(await fixture.provider.list()).toEqual([]);
    }
  });

  it("keeps the volumes of an earlier instance when it is destroyed unused", async () => {
    const sandbox = await fixture.create({});
    await sandbox.exec("echo kept > /.data/file");
    await sandbox.destroy({ keepsVolumes: true });
    const prepared = await Sandbox.prepare(fixture.provider, sandbox.config, { id: sandbox.id });
    await prepared.destroy();
    await rejection(restore(sandbox, await mkdtemp(join(fixture.stateDirectory, "checkpoint-"))));
    await using again = await Sandbox.create(fixture.provider, {}, { id: sandbox.id });
    expect(await again.readTextFile("/.data/file")).toBe("kept\n");
  });

  it("is listed, and cannot be prepared twice", async () => {
    const sandbox = await fixture.create({});
    await sandbox.destroy();
    const id = createSandboxId();
    const prepared = await Sandbox.prepare(fixture.provider, sandbox.config, { id });
    expect(await fixture.provider.list()).toMatchObject([{ id, isRunning: false }]);
    const again = Sandbox.prepare(fixture.provider, sandbox.config, { id });
    expect(await rejection(again)).toMatchObject({ reason: "instance_exists" });
    await prepared.destroy();
    expect(await fixture.provider.list()).toEqual([]);
  });
});
