import { rejection } from "@sandpiper/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { DockerHome, LOST, SHOW, write } from "./docker-home.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput, numbersTo } from "./numbered-output.ts";
import { SeenCheckpoints } from "./seen-checkpoints.ts";

const docker = await shared(DockerHome.start());
afterEach(async () => expect(await docker.left()).toEqual([]));

describe("checkpoints on Docker", () => {
  it("pause and resume a sandbox with its files; clients of its processes get process_lost", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    expect(sandbox.info.fidelity).toBe("filesystem");
    await sandbox.exec(write("kept"));
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const outcomes = Promise.allSettled([collectOutput(process).ended, process.wait()]);
    expect((await sandbox.pause()).state).toBe("paused");
    expect(await docker.left()).toEqual([]);
    expect((await sandbox.resume()).state).toBe("ready");
    expect(await outcomes).toMatchObject([{ reason: LOST }, { reason: LOST }]);
    expect((await sandbox.exec(SHOW)).stdout).toBe("kept\nkept\n");
    await sandbox.destroy();
  });

  it("roll a sandbox and its volume back; a client that reads its output gets data_loss", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("before"));
    const { id: checkpoint, fidelity } = await sandbox.checkpoint({ name: "one" });
    expect(fidelity).toBe("filesystem");
    await sandbox.exec(`${write("after")}; touch later /.data/later`);
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const output = collectOutput(process);
    const { rolledBackTo } = await sandbox.rollback("one");
    expect(rolledBackTo).toMatchObject({ checkpoint });
    await expect(output.ended).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect((await sandbox.exec(`${SHOW}; ls later /.data/later`)).stdout).toBe("before\nbefore\n");
    await sandbox.destroy();
  });

  it("return a sandbox whose container was killed to the newest one at its next use, with onFailure restore", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create({ onFailure: "restore" });
    await sandbox.exec(write("saved"));
    const { id: checkpoint } = await sandbox.checkpoint();
    await sandbox.exec(write("lost"));
    const running = rejection(sandbox.exec("sleep 600"));
    await docker.killContainers();
    expect(await running).toMatchObject({ reason: "instance_crashed", retryable: false });
    expect((await sandbox.exec(SHOW)).stdout).toBe("saved\nsaved\n");
    expect((await node.client.sandboxes.connect(sandbox.id)).info).toMatchObject({ rolledBackTo: { checkpoint } });
    await sandbox.destroy();
  });

  it("fork a running sandbox: the forks get its files, and only the original keeps its processes", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("before"));
    const process = await sandbox.start("while [ ! -e stop ]; do sleep 0.05; done; echo done");
    const forks = await sandbox.fork({ count: 2 });
    await sandbox.exec(write("original"));
    for (const fork of forks) {
      expect((await fork.exec(SHOW)).stdout).toBe("before\nbefore\n");
      await expect(fork.attach(process.id)).rejects.toMatchObject(LOST);
      await fork.exec(write(fork.id));
    }
    expect((await sandbox.exec(SHOW)).stdout).toBe("original\noriginal\n");
    await sandbox.exec("touch stop");
    expect(await process.wait()).toMatchObject({ exitCode: 0 });
    const [first, second] = forks;
    await first?.destroy();
    expect((await second?.exec(SHOW))?.stdout).toBe(`${second?.id}\n${second?.id}\n`);
    await Promise.all([sandbox, second].map((each) => each?.destroy()));
  });

  it("are taken automatically while a command runs, without losing any of its output", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create({ checkpointPolicy: { everyMs: 1000, keepLast: 2 } });
    const process = await sandbox.start("i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.02; done");
    const output = collectOutput(process);
    const seen = new SeenCheckpoints(sandbox);
    await expect.poll(() => seen.count()).toBeGreaterThanOrEqual(3);
    expect(seen.mostAtOnce).toBeLessThanOrEqual(2);
    await sandbox.exec("touch stop");
    expect(await output.ended).toBe(numbersTo(output.lines()));
    await sandbox.destroy();
  });

  it("start a new sandbox, and a second checkpoint uploads less than a tenth of its size", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("here"));
    const first = await sandbox.checkpoint();
    await sandbox.exec("echo more > more");
    const second = await sandbox.checkpoint();
    // The store has the image's chunks already.
    expect(second.uploadedBytes).toBeLessThan(second.sizeBytes / 10);
    const other = await node.client.sandboxes.create({ checkpoint: first.id });
    expect((await other.exec(`${SHOW}; ls more`)).stdout).toBe("here\nhere\n");
    await Promise.all([sandbox.destroy(), other.destroy()]);
  });

  it("restore a sandbox whose node was killed and whose container was removed, and report the rollback", async () => {
    const config = docker.config();
    let id: string;
    {
      await using node = await NodeProcess.start(config);
      const sandbox = await node.client.sandboxes.create();
      ({ id } = sandbox);
      await sandbox.exec(write("saved"));
      await sandbox.checkpoint();
      await sandbox.exec(write("later"));
      await node.kill();
    }
    await docker.removeContainers();
    await using node = await NodeProcess.start(config);
    const sandbox = await node.client.sandboxes.connect(id);
    expect((await sandbox.exec(SHOW)).stdout).toBe("saved\nsaved\n");
    expect((await node.client.sandboxes.connect(id)).info.rolledBackTo).not.toBeNull();
    await sandbox.destroy();
  });
});
