import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { createDockerFixture } from "../testing/fixture.ts";
import { crashContainer } from "../testing/traces.ts";
import { Watch } from "../testing/watch.ts";

const fixture = await shared(createDockerFixture());

describe("a watch of containers", () => {
  it("replays a container that has ended, with its exit code", async () => {
    await using sandbox = await fixture.create();
    await crashContainer(sandbox.id, fixture);
    await sandbox.closed;
    await using watch = new Watch(fixture);
    const exit = { exitCode: 137, isOutOfMemory: false };
    expect(await watch.next()).toMatchObject({ id: sandbox.id, kind: "failed", isReplay: true, exit });
  });

  it("reports an intended stop as stopped, not failed", async () => {
    await using sandbox = await fixture.create();
    await using watch = new Watch(fixture);
    await watch.next();
    await fixture.provider.containers.stop(sandbox.id, { timeoutMs: 0 });
    expect(await watch.next()).toMatchObject({ kind: "stopped", isReplay: false });
    await fixture.provider.containers.start(sandbox.id);
    expect(await watch.next()).toMatchObject({ kind: "running" });
  });

  it("that starts later gets its own replay, and both continue", async () => {
    await using first = new Watch(fixture);
    await using sandbox = await fixture.create();
    await first.kinds(sandbox.id, "running");
    await using second = new Watch(fixture);
    expect(await second.next()).toMatchObject({ id: sandbox.id, kind: "running", isReplay: true });
    await sandbox.destroy();
    for (const watch of [first, second]) expect(await watch.kinds(sandbox.id, "removed")).toContain("removed");
  });

  it("does not see the containers of another home", async () => {
    const other = fixture.newProvider({ stateDirectory: `${fixture.stateDirectory}/other` });
    await using watch = new Watch(fixture);
    await using hidden = await Sandbox.create(other);
    await using sandbox = await fixture.create();
    await watch.kinds(sandbox.id, "running");
    expect(watch.seen.map(({ id }) => id)).not.toContain(hidden.id);
  });

  it("ends when its signal aborts", async () => {
    const abort = new AbortController();
    const events = fixture.provider.containers.watch(abort.signal)[Symbol.asyncIterator]();
    const next = events.next();
    abort.abort();
    expect(await next).toMatchObject({ done: true });
  });
});
