import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput, countTo, numbersTo } from "./numbered-output.ts";
import { SeenCheckpoints } from "./seen-checkpoints.ts";

describe("checkpoints on gVisor", () => {
  it("pause and resume a sandbox without losing or repeating output that a client is reading", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    const process = await sandbox.start(countTo(150));
    const output = collectOutput(process);
    await expect.poll(output.lines).toBeGreaterThan(5);
    expect((await sandbox.pause()).state).toBe("paused");
    expect(await home.instances()).toEqual([]);
    expect((await sandbox.resume()).state).toBe("ready");
    expect(await output.ended).toBe(numbersTo(150));
    expect(await process.wait()).toMatchObject({ exitCode: 0 });
    await sandbox.destroy();
  });

  it("let the next node wake a paused sandbox with its files when it is used", async () => {
    await using home = new GvisorHome();
    let id: string;
    {
      await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
      const sandbox = await node.client.sandboxes.create();
      ({ id } = sandbox);
      await sandbox.files.write("kept", "kept");
      await sandbox.pause();
    }
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.connect(id);
    expect((await sandbox.exec("cat kept")).stdout).toBe("kept");
    await sandbox.destroy();
  });

  it("fork a running sandbox; each fork has its own id, token, random numbers and files", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec("echo before > history");
    const forks = await sandbox.fork({ count: 3, labels: { kind: "fork" } });
    const all = [sandbox, ...forks];
    expect(new Set(all.map(({ id }) => id)).size).toBe(4);
    expect(new Set(all.map(({ info }) => info.token)).size).toBe(4);
    const random = await Promise.all(
      all.map(async (each) => (await each.exec("od -An -N16 -tx1 /dev/urandom")).stdout),
    );
    expect(new Set(random).size).toBe(4);
    const dates = await Promise.all(all.map(async (each) => Number((await each.exec("date +%s")).stdout)));
    for (const date of dates) expect(Math.abs(date - Date.now() / 1000)).toBeLessThan(5);
    await Promise.all(all.map((each, k) => each.exec(`echo ${k} >> history`)));
    const histories = await Promise.all(all.map(async (each) => (await each.exec("cat history")).stdout));
    expect(histories).toEqual([0, 1, 2, 3].map((k) => `before\n${k}\n`));
    for (const each of all) await each.destroy();
  });

  it("roll a sandbox back; a client that reads its output gets data_loss instead of rewritten output", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec("echo 1 > file");
    const { id: checkpoint } = await sandbox.checkpoint({ name: "one" });
    await sandbox.exec("echo 2 > file");
    const process = await sandbox.start("while true; do echo x; sleep 0.05; done");
    const output = collectOutput(process);
    await expect.poll(output.lines).toBeGreaterThan(0);
    const { rolledBackTo } = await sandbox.rollback("one");
    expect(rolledBackTo).toMatchObject({ checkpoint });
    await expect(output.ended).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect((await sandbox.exec("cat file")).stdout).toBe("1\n");
    expect((await sandbox.checkpoints()).map(({ name }) => name)).toEqual(["one"]);
    await sandbox.destroy();
  });

  it("are taken automatically after each command, and only the newest are kept", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create({ checkpointPolicy: { perCommand: true, keepLast: 2 } });
    const seen = new SeenCheckpoints(sandbox);
    for (let round = 0; round < 4; round++) {
      const before = await seen.count();
      await sandbox.exec(`echo ${round} > file`);
      await expect.poll(() => seen.count(), { interval: 20 }).toBeGreaterThan(before);
    }
    expect(seen.mostAtOnce).toBeLessThanOrEqual(2);
    await sandbox.destroy();
  });

  it("restore a sandbox whose node was killed and whose instance is gone, and report the rollback", async () => {
    await using home = new GvisorHome();
    let id: string;
    {
      await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
      const sandbox = await node.client.sandboxes.create();
      ({ id } = sandbox);
      await sandbox.exec("echo saved > file");
      await sandbox.checkpoint();
      await sandbox.exec("echo lost > file");
      await node.kill();
    }
    await home.removeInstances();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.connect(id);
    expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
    const { rolledBackTo } = (await node.client.sandboxes.connect(id)).info;
    expect(rolledBackTo).not.toBeNull();
    await sandbox.destroy();
  });

  it("start a new sandbox with the files of another", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec("echo here > file");
    const { id: checkpoint } = await sandbox.checkpoint();
    const other = await node.client.sandboxes.create({ checkpoint, name: "from a checkpoint" });
    expect(other.id).not.toBe(sandbox.id);
    expect((await other.exec("cat file")).stdout).toBe("here\n");
    await Promise.all([sandbox.destroy(), other.destroy()]);
  });
});
