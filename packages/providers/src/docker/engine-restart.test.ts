import { type ContainerEvent, Sandbox } from "@sandpiper/core";
import { rejection } from "@sandpiper/core/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { containerName } from "./container/inspect-container.ts";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";

let fixture: DockerFixture;
const start = async (liveRestore: boolean) => {
  fixture = await createDockerFixture({ liveRestore });
};
afterEach(() => fixture?.[Symbol.asyncDispose]());

/** Counts for about three seconds. */
const counting = "for i in $(seq 150); do echo $i; sleep 0.02; done";
const counted = Array.from({ length: 150 }, (_, index) => `${index + 1}\n`).join("");

describe("an engine that is killed and restarted without live restore", () => {
  beforeEach(() => start(false), 300_000);

  it("ends its containers: their users get the reason, and a new container works", async () => {
    const sandbox = await fixture.create();
    const running = rejection(sandbox.exec("sleep 600"));
    await fixture.dockerd.kill();
    expect((await running).code).toBe("unavailable");
    const meanwhile = rejection(Sandbox.create(fixture.provider));
    expect(await meanwhile).toMatchObject({ reason: "engine_unreachable" });
    await fixture.dockerd.restart();
    expect(await sandbox.closed).toMatchObject({
      reason: "crashed",
      message: expect.stringContaining("while the engine was down"),
    });
    expect(sandbox.state).toBe("failed");
    await using next = await fixture.create();
    expect((await next.exec("echo works")).stdout).toBe("works\n");
    await sandbox.destroy();
  });

  it("is watched further: a replay reports what happened to containers in the meantime", async () => {
    const sandbox = await fixture.create();
    const removed = await fixture.create();
    const abort = new AbortController();
    const events = fixture.provider.containers.watch(abort.signal)[Symbol.asyncIterator]();
    const next = async () => (await events.next()).value as ContainerEvent;
    expect([(await next()).kind, (await next()).kind]).toEqual(["running", "running"]);
    await fixture.dockerd.kill();
    await fixture.dockerd.restart();
    const after = [await next(), await next()];
    expect(after.map(({ id }) => id).toSorted()).toEqual([sandbox.id, removed.id].toSorted());
    // A restarted engine ends the containers that it finds running.
    expect(after).toMatchObject([
      { kind: "stopped", isReplay: true },
      { kind: "stopped", isReplay: true },
    ]);
    await fixture.engine.docker.getContainer(containerName(removed.id)).remove();
    expect(await next()).toMatchObject({ id: removed.id, kind: "removed", isReplay: false });
    abort.abort();
    expect(await events.next()).toMatchObject({ done: true });
    await Promise.all([sandbox.destroy(), removed.destroy()]);
  });
});

describe("an engine that is killed and restarted with live restore", () => {
  beforeEach(() => start(true), 300_000);

  it("finds its containers running: the channel reconnects, and a running command loses no output", async () => {
    await using sandbox = await fixture.create();
    const process = await sandbox.start(counting);
    const reading = readAll(process.output);
    await fixture.dockerd.kill();
    const call = sandbox.exec("echo after");
    await fixture.dockerd.restart();
    // The command waits for the engine, or fails because it started before the channel was lost.
    const answer = await call.catch(() => sandbox.exec("echo after"));
    expect(answer.stdout).toBe("after\n");
    const text = await reading.catch(async () => await readAll((await sandbox.attach(process.id)).output));
    expect(text).toBe(counted);
    expect(await (await sandbox.attach(process.id)).wait()).toMatchObject({ exitCode: 0 });
    expect(sandbox.state).toBe("ready");
  });

  it("ends the wait for a container that ended while the engine was down", async () => {
    const sandbox = await fixture.create();
    const { State } = await fixture.engine.docker.getContainer(containerName(sandbox.id)).inspect();
    await fixture.dockerd.kill();
    process.kill(State.Pid, "SIGKILL");
    await fixture.dockerd.restart();
    expect(await sandbox.closed).toMatchObject({ reason: "crashed" });
    await sandbox.destroy();
  });
});

async function readAll(output: AsyncIterable<{ readonly bytes: Uint8Array }>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(output, ({ bytes }) => bytes)).toString();
}
