import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { NodeProcess } from "./node-process.ts";

/** Says its numbers one by one, so that a gap or a repetition shows. */
const COUNT = "i=0; while [ $i -lt 150 ]; do i=$((i+1)); echo $i; sleep 0.02; done";
const NUMBERS = Array.from({ length: 150 }, (_, k) => `${k + 1}\n`).join("");

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  return text;
}

describe("checkpoints on gVisor", () => {
  it("let a sandbox be paused and resumed while a client reads what it writes, whole", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    const process = await sandbox.start(COUNT);
    const reading = textOf(process.stdout);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await sandbox.pause()).state).toBe("paused");
    expect(await home.instances()).toEqual([]);
    expect((await sandbox.resume()).state).toBe("ready");
    expect(await reading).toBe(NUMBERS);
    expect(await process.wait()).toMatchObject({ exitCode: 0 });
    await sandbox.destroy();
  });

  it("outlive the node, and are all that a paused sandbox needs", async () => {
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
    await expect(sandbox.exec("true")).rejects.toMatchObject({ reason: "sandbox_paused" });
    await sandbox.resume();
    expect((await sandbox.exec("cat kept")).stdout).toBe("kept");
    await sandbox.destroy();
  });

  it("fork a running sandbox into several, each with an id, a token and a chance of its own", async () => {
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

  it("set a sandbox back, and whoever reads from it is told instead of being given another past", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec("echo 1 > file");
    const { id: checkpoint } = await sandbox.checkpoint({ name: "one" });
    await sandbox.exec("echo 2 > file");
    const process = await sandbox.start("while true; do echo x; sleep 0.05; done");
    const reading = textOf(process.stdout);
    await new Promise((resolve) => setTimeout(resolve, 300));
    const { rolledBackTo } = await sandbox.rollback("one");
    expect(rolledBackTo).toMatchObject({ checkpoint });
    await expect(reading).rejects.toMatchObject({ code: "data_loss", reason: "rolled_back" });
    expect((await sandbox.exec("cat file")).stdout).toBe("1\n");
    expect((await sandbox.checkpoints()).map(({ name }) => name)).toEqual(["one"]);
    await sandbox.destroy();
  });

  it("are taken by themselves, as the policy says, and only so many are kept", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" });
    const sandbox = await node.client.sandboxes.create({ checkpointPolicy: { perCommand: true, keepLast: 2 } });
    const seen = new Set<string>();
    for (let round = 0; round < 4; round++) {
      await sandbox.exec(`echo ${round} > file`);
      for (;;) {
        const checkpoints = await sandbox.checkpoints();
        expect(checkpoints.length).toBeLessThanOrEqual(2);
        const fresh = checkpoints.find(({ id }) => !seen.has(id));
        for (const { id } of checkpoints) seen.add(id);
        if (fresh !== undefined) break;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    expect(seen.size).toBeGreaterThanOrEqual(4);
    await sandbox.destroy();
  });

  it("bring a sandbox back whose node and machine were gone, and say what it lost", async () => {
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

  it("are a place to start from for a new sandbox", async () => {
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
