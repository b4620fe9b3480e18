import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { DockerHome } from "./docker-home.ts";
import { NodeProcess } from "./node-process.ts";

const LOST = { code: "gone", reason: "process_lost" };
/** In the root filesystem, and in the volume. */
const SHOW = "cat file /.data/file";
const write = (text: string) => `echo ${text} | tee file > /.data/file`;
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let docker: DockerHome;
beforeAll(async () => {
  docker = await DockerHome.start();
}, 300_000);
afterAll(() => docker?.[Symbol.asyncDispose]());
afterEach(async () => expect(await docker.left()).toEqual([]));

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  return text;
}

describe("checkpoints on Docker", () => {
  it("let a sandbox be paused and resumed with its files, and tell who reads from a process that it is lost", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    expect(sandbox.info.fidelity).toBe("filesystem");
    await sandbox.exec(write("kept"));
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const reading = textOf(process.stdout);
    const ending = process.wait();
    const outcomes = Promise.allSettled([reading, ending]);
    expect((await sandbox.pause()).state).toBe("paused");
    expect(await docker.left()).toEqual([]);
    expect((await sandbox.resume()).state).toBe("ready");
    expect(await outcomes).toMatchObject([{ reason: LOST }, { reason: LOST }]);
    expect((await sandbox.exec(SHOW)).stdout).toBe("kept\nkept\n");
    await sandbox.destroy();
  });

  it("set a sandbox back with its volume, and whoever reads from it is told", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("before"));
    const { id: checkpoint, fidelity } = await sandbox.checkpoint({ name: "one" });
    expect(fidelity).toBe("filesystem");
    await sandbox.exec(`${write("after")}; touch later /.data/later`);
    const process = await sandbox.start("while true; do echo x; sleep 0.1; done");
    const reading = textOf(process.stdout);
    reading.catch(() => {});
    const { rolledBackTo } = await sandbox.rollback("one");
    expect(rolledBackTo).toMatchObject({ checkpoint });
    await expect(reading).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect((await sandbox.exec(`${SHOW}; ls later /.data/later`)).stdout).toBe("before\nbefore\n");
    await sandbox.destroy();
  });

  it("fork a running sandbox, which goes on with its processes, and the forks with its files", async () => {
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

  it("are taken by themselves while a command runs, which misses nothing", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create({ checkpointPolicy: { everyMs: 1000, keepLast: 2 } });
    const process = await sandbox.start("i=0; while [ ! -e stop ]; do i=$((i+1)); echo $i; sleep 0.02; done");
    const reading = textOf(process.stdout);
    const seen = new Set<string>();
    while (seen.size < 3) {
      const checkpoints = await sandbox.checkpoints();
      expect(checkpoints.length).toBeLessThanOrEqual(2);
      for (const { id } of checkpoints) seen.add(id);
      await wait(50);
    }
    await sandbox.exec("touch stop");
    const text = await reading;
    expect(text).toBe(Array.from({ length: text.split("\n").length - 1 }, (_, k) => `${k + 1}\n`).join(""));
    await sandbox.destroy();
  });

  it("are a place to start from, also for what keeps a second one small", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("here"));
    const first = await sandbox.checkpoint();
    await sandbox.exec("echo more > more");
    const second = await sandbox.checkpoint();
    // The image is there already.
    expect(second.uploadedBytes).toBeLessThan(second.sizeBytes / 10);
    const other = await node.client.sandboxes.create({ checkpoint: first.id });
    expect((await other.exec(`${SHOW}; ls more`)).stdout).toBe("here\nhere\n");
    await Promise.all([sandbox.destroy(), other.destroy()]);
  });

  it("bring a sandbox back whose node was killed and whose container was removed, and say what it lost", async () => {
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
