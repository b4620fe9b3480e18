import { Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { createDockerFixture } from "./testing/fixture.ts";
import { importTestImage } from "./testing/test-image.ts";
import { crashContainer } from "./testing/traces.ts";

const fixture = await shared(createDockerFixture());

const containers = () => fixture.provider.containers;

describe("a container", () => {
  it("is described with its image, state and creation time", async () => {
    await using sandbox = await fixture.create();
    const info = await containers().get(sandbox.id);
    expect(info).toMatchObject({ id: sandbox.id, state: "running", addresses: {}, image: fixture.image });
    expect(info.imageId).toMatch(/^sha256:/);
    expect(info.exit).toBeUndefined();
    expect(Math.abs(info.createdAt.getTime() - sandbox.createdAt.getTime())).toBeLessThan(60_000);
  });

  it("keeps its files and loses its processes over stop and start", async () => {
    await using sandbox = await fixture.create();
    await sandbox.exec("echo kept > kept");
    await containers().stop(sandbox.id, { timeoutMs: 0 });
    expect(await sandbox.closed).toMatchObject({ message: "its container was stopped" });
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "stopped", exit: { isOutOfMemory: false } });
    await containers().start(sandbox.id);
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "running", exit: undefined });
  });

  it("stops as soon as its processes have ended within the timeout", async () => {
    await using sandbox = await fixture.create();
    await sandbox.start("trap 'echo asked > /.data/asked; exit' TERM; echo > /tmp/ready; sleep 600 & wait");
    await sandbox.start("sleep 600");
    await expect.poll(() => sandbox.exec("ls /tmp/ready")).toMatchObject({ exitCode: 0 });
    await containers().stop(sandbox.id, { timeoutMs: 600_000 });
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "stopped", exit: { exitCode: 0 } });
    await sandbox.closed;
    await containers().start(sandbox.id);
    await using again = await Sandbox.adopt(fixture.provider, sandbox.id);
    expect(await again.readTextFile("/.data/asked")).toBe("asked\n");
  });

  it("is killed when its processes do not end within the timeout", async () => {
    await using sandbox = await fixture.create();
    await sandbox.start("trap '' TERM; echo > /tmp/ready; while true; do sleep 1; done");
    await expect.poll(() => sandbox.exec("ls /tmp/ready")).toMatchObject({ exitCode: 0 });
    await containers().stop(sandbox.id, { timeoutMs: 100 });
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "stopped", exit: { exitCode: 137 } });
  });

  it("is in state failed after it was killed", async () => {
    await using sandbox = await fixture.create();
    await crashContainer(sandbox.id, fixture);
    await sandbox.closed;
    const exit = { exitCode: 137, isOutOfMemory: false };
    expect(await containers().get(sandbox.id)).toMatchObject({ state: "failed", exit });
  });

  it("is outdated once its image reference resolves to another image", async () => {
    const image = await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "first" });
    await using sandbox = await fixture.create({ container: { image } });
    await using other = await fixture.create();
    expect(await containers().isOutdated(sandbox.id)).toBe(false);
    await importTestImage(fixture.engine, { name: "sandpiper-test:moving", label: "second" });
    expect(await containers().isOutdated(sandbox.id)).toBe(true);
    expect(await containers().isOutdated(other.id)).toBe(false);
  });

  it("is not found by an unknown id", async () => {
    const id = createSandboxId();
    const errors = await Promise.all([
      rejection(containers().get(id)),
      rejection(containers().start(id)),
      rejection(containers().stop(id, { timeoutMs: 0 })),
      rejection(containers().isOutdated(id)),
    ]);
    for (const { reason } of errors) expect(reason).toBe("no_such_container");
  });
});
