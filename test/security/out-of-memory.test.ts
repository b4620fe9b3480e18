import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { createGvisorFixture } from "../../packages/providers/src/gvisor/testing/fixture.ts";
import { readCgroup } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { type Hog, hogs } from "./hogs.ts";

const fixture = await shared(createGvisorFixture());

/** The others need a compiler, a JRE or time. */
const everyHog = process.env["SANDPIPER_TEST_HOGS"] === "all";
const chosen = everyHog ? Object.keys(hogs) : ["python", "memfd"];

/** Processes that use little memory: one works all the time, one sleeps and holds memory. */
async function startBystanders(sandbox: Sandbox) {
  const working = await sandbox.start("while sleep 0.02; do :; done");
  const sleeping = await sandbox.start(["python3", "-c", "x = b'x' * (16 << 20); import time; time.sleep(600)"]);
  return [working.id, sleeping.id];
}

async function runningIds(sandbox: Sandbox): Promise<string[]> {
  return (await sandbox.processes()).filter(({ isRunning }) => isRunning).map(({ id }) => id);
}

describe.each(chosen)("in a sandbox of gVisor, a program of kind %s that uses too much memory", (name) => {
  it.each([1, 4])("is killed alone, also when %i run at once", async (count) => {
    const hog = hogs[name] as Hog;
    await using sandbox = await fixture.create({ memoryMib: 256, diskMib: 256 });
    await hog.prepare?.(sandbox);
    const bystanders = await startBystanders(sandbox);
    const results = await Promise.all(Array.from({ length: count }, () => sandbox.exec(hog.command)));
    for (const result of results) expect(result).toMatchObject(hog.result);
    expect(await runningIds(sandbox)).toEqual(expect.arrayContaining(bystanders));
    expect((await sandbox.exec("echo alive")).stdout).toBe("alive\n");
  });
});

describe("a sandbox of gVisor that runs out of memory", () => {
  it("marks the command whose child was killed, and no other", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96 });
    const other = sandbox.exec("sleep 2; echo done");
    const hog = "python3 -c 'x = b\"y\" * (400 << 20)'";
    expect(await sandbox.exec(`${hog}; echo "exit code $?"`)).toMatchObject({
      exitCode: 0,
      stdout: "exit code 137\n",
      outOfMemory: true,
    });
    expect(await other).toMatchObject({ exitCode: 0, stdout: "done\n", outOfMemory: false });
  });

  it("does not take mapped files for memory", async () => {
    await using sandbox = await fixture.create({ memoryMib: 96, diskMib: 512 });
    const map = `
import mmap
with open("/tmp/large", "wb") as file: file.write(b"x" * 1)
with open("/tmp/large", "r+b") as file:
    for _ in range(200): file.seek(0, 2); file.write(b"y" * (1 << 20))
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    print(sum(mapped[at] for at in range(0, len(mapped), 4096)) > 0)`;
    expect(await sandbox.exec(["python3", "-c", map])).toMatchObject({
      exitCode: 0,
      stdout: "True\n",
      outOfMemory: false,
    });
  });

  it("survives in another instance after a restore as well, with the same limit", async () => {
    await using sandbox = await fixture.create({ memoryMib: 128 });
    const directory = await mkdtemp(join(fixture.stateDirectory, "checkpoint-"));
    await sandbox.checkpoint(directory, { keepsRunning: false });
    await sandbox.destroy();
    const { config, createdAt, id } = sandbox;
    const prepared = await Sandbox.prepare(fixture.provider, config, { id });
    await using restored = await Sandbox.restore(fixture.provider, config, { prepared, directory, createdAt });
    expect(Number(await readCgroup(restored.id, "memory.limit_in_bytes", "memory.max"))).toBe((128 + 192) << 20);
    expect(await restored.exec("python3 -c 'x = b\"y\" * (400 << 20)'")).toMatchObject({ outOfMemory: true });
    expect((await restored.exec("echo alive")).stdout).toBe("alive\n");
  });

  it("gives the stand-ins of its processes to the host's OOM killer first", async () => {
    await using sandbox = await fixture.create();
    await using _ = await sandbox.start("sleep 600");
    const scores = await Promise.all((await hostProcesses(sandbox)).map(scoreOf));
    const stubs = scores.filter(({ isStub }) => isStub);
    expect(stubs.length).toBeGreaterThan(1);
    expect(stubs.map(({ score }) => score)).toEqual(expect.arrayContaining([1000]));
    expect(scores.filter(({ isStub, score }) => !isStub && score > 0)).toEqual([]);
  });
});

async function hostProcesses({ id }: Sandbox): Promise<string[]> {
  return (await readCgroup(id, "cgroup.procs")).trim().split("\n");
}

async function scoreOf(pid: string) {
  const [commandLine, score] = await Promise.all(
    ["cmdline", "oom_score_adj"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
  );
  return { isStub: commandLine === "", score: Number(score) };
}
