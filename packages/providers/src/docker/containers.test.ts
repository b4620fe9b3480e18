import { rejection } from "@sandpiper/core/testing";
import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { describeContainers } from "./testing/describe-containers.ts";
import { createDockerFixture } from "./testing/fixture.ts";
import { crashContainer } from "./testing/traces.ts";

const fixture = await shared(createDockerFixture());

const containers = () => fixture.provider.containers;

describeContainers("a Docker container", fixture);

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
