import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";
import { importTestImage } from "./testing/test-image.ts";
import { crashContainer } from "./testing/traces.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

const containers = () => fixture.provider.containers;

describe("a container", () => {
  it("is told of with its image, its state and when it was made", async () => {
    await using sandbox = await fixture.create();
    const info = await containers().get(sandbox.id);
    expect(info).toMatchObject({ id: sandbox.id, state: "running", addresses: {}, image: fixture.image });
    expect(info.imageId).toMatch(/^sha256:/);
    expect(info.exit).toBeUndefined();
    expect(Math.abs(info.createdAt.getTime() - sandbox.createdAt.getTime())).toBeLessThan(60_000);
  });

  it("is stopped and started: its files are as they were, its processes are gone", async () => {
    await using sandbox = await fixture.create();
    await sandbox.exec("echo kept > kept");
    await containers().stop(sandbox.id, { timeoutMs: 0 });
    expect(await sandbox.closed).toMatchObject({ message: "its container was stopped" });
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "stopped", exit: { isOutOfMemory: false } });
    await containers().start(sandbox.id);
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "running", exit: undefined });
  });

  it("that was killed has failed", async () => {
    await using sandbox = await fixture.create();
    await crashContainer(sandbox.id, fixture);
    await sandbox.closed;
    const exit = { exitCode: 137, isOutOfMemory: false };
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "failed", exit });
  });

  it("is outdated once its image's reference means another image", async () => {
    const image = await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "first" });
    await using sandbox = await fixture.create({ container: { image } });
    await using other = await fixture.create();
    expect(await containers().isOutdated(sandbox.id)).toBe(false);
    await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "second" });
    expect(await containers().isOutdated(sandbox.id)).toBe(true);
    expect(await containers().isOutdated(other.id)).toBe(false);
  });

  it("that nobody knows is not found", async () => {
    const id = createSandboxId();
    const calls = [
      containers().get(id),
      containers().start(id),
      containers().stop(id, { timeoutMs: 0 }),
      containers().isOutdated(id),
    ];
    for (const call of calls) expect((await rejection(call)).reason).toBe("no_such_container");
  });
});
