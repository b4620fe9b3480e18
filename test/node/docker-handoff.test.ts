import { describe, expect, it } from "vitest";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { DockerHome, LOST, SHOW, write } from "./docker-home.ts";
import { collectOutput } from "./numbered-output.ts";
import { startTwoNodes } from "./two-nodes.ts";

/** An engine without the image. */
const [docker, other] = await Promise.all([shared(DockerHome.start()), shared(DockerHome.start({ hasImage: false }))]);
const store = freshDirectory("docker-store");

const startCluster = (homes: readonly [DockerHome, DockerHome]) =>
  startTwoNodes(homes, { store: `file://${store}`, leaseMs: 4000 });

describe("a sandbox on Docker", () => {
  it("moves with its files to a node with another engine; clients of its processes get process_lost", async () => {
    await using cluster = await startCluster([docker, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("moved"));
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const outcomes = Promise.allSettled([collectOutput(process).ended, process.wait()]);
    await cluster.bring(sandbox);
    expect(await outcomes).toMatchObject([{ reason: LOST }, { reason: LOST }]);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    expect((await sandbox.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    await expect.poll(() => docker.left()).toEqual([]);
    await moved.destroy();
    expect(await other.left()).toEqual([]);
  });

  it("moves between two nodes that share an engine", async () => {
    await using cluster = await startCluster([docker, docker]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("moved"));
    await cluster.bring(sandbox);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    await moved.destroy();
    await expect.poll(() => docker.left()).toEqual([]);
  });

  it("moves to another node when its own node stops, without a rollback", async () => {
    await using cluster = await startCluster([docker, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("drained"));
    await cluster.first.stop();
    expect(await docker.left()).toEqual([]);
    const moved = await cluster.there.sandboxes.connect(sandbox.id);
    expect((await moved.exec(SHOW)).stdout).toBe("drained\ndrained\n");
    expect(moved.info.rolledBackTo).toBeNull();
    await moved.destroy();
    expect(await other.left()).toEqual([]);
  });

  it("is restored from its newest checkpoint on another node when its node and engine die, and reports it", async () => {
    await using doomed = await DockerHome.start();
    await using cluster = await startCluster([doomed, other]);
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("saved"));
    await sandbox.checkpoint();
    await sandbox.exec(write("later"));
    await cluster.first.kill();
    await doomed.kill();
    await expect
      .poll(async () => (await (await cluster.there.sandboxes.connect(sandbox.id)).exec(SHOW)).stdout, {
        timeout: 60_000,
        interval: 500,
      })
      .toBe("saved\nsaved\n");
    const found = await cluster.there.sandboxes.connect(sandbox.id);
    expect(found.info.rolledBackTo).not.toBeNull();
    await found.destroy();
    expect(await other.left()).toEqual([]);
  });
});
