import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findGuard } from "./find-agent.ts";
import { Guard } from "./guard.ts";
import { runProgram } from "./run-program.ts";
import { boxPath, CgroupBox } from "./testing/cgroup-box.ts";

const nodeScript = fileURLToPath(new URL("testing/guarded-node.ts", import.meta.url));

const GRACE_MS = 100;

let directory: string;
let guard: Guard;
let boxes: CgroupBox[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "sandpiper-guard-"));
  guard = new Guard({ directory, graceMs: GRACE_MS });
  boxes = [];
});
afterEach(async () => {
  const pid = guardPid();
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  // The guard exits when its directory is gone.
  await expect.poll(() => isRunning(pid)).toBe(false);
  for (const box of boxes) await box.remove();
});

async function createBox(processes?: number): Promise<CgroupBox> {
  const box = await CgroupBox.create(processes);
  boxes.push(box);
  guard.killList.set(box.id, box.targets);
  return box;
}

const inMs = (delayMs: number) => systemClock.monotonicMs() + delayMs;
/** 0 without a guard. */
const guardPid = () => {
  const path = join(directory, ".guard");
  return existsSync(path) ? Number.parseInt(readFileSync(path, "utf8") || "0", 10) : 0;
};
/** An ended process may still be a zombie. */
const isRunning = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
const leases = async () => (await readdir(directory)).filter((name) => !name.startsWith(".")).toSorted();

describe("an instance", () => {
  it("is killed with all its processes when its lease expires, and the node sees it until it acknowledges", async () => {
    await guard.start();
    const box = await createBox(3);
    guard.set(box.id, inMs(50));
    await expect.poll(() => guard.ended()).toEqual([box.id]);
    await expect.poll(() => box.running).toBe(0);
    guard.remove(box.id);
    expect(await leases()).toEqual([]);
  });

  it.each<[string, (id: SandboxId) => void]>([
    ["while its lease is renewed", (id) => guard.set(id, inMs(60_000))],
    ["after its lease was released", (id) => guard.remove(id)],
  ])("keeps running %s", async (_, keep) => {
    await guard.start();
    const [kept, other] = [await createBox(), await createBox()];
    guard.set(kept.id, inMs(400));
    guard.set(other.id, inMs(800));
    keep(kept.id);
    await expect.poll(() => guard.ended()).toEqual([other.id]);
    expect(kept.running).toBe(1);
  });

  it("is killed when it starts only after its lease has expired, even if the lease is renewed then", async () => {
    await guard.start();
    const box = await createBox(0);
    guard.set(box.id, inMs(0));
    await expect.poll(() => guard.ended()).toEqual([box.id]);
    guard.set(box.id, inMs(60_000));
    await box.add();
    await expect.poll(() => box.running).toBe(0);
    guard.remove(box.id);
    guard.set(box.id, inMs(60_000));
    await box.add();
    await nextCheck();
    expect(box.running).toBe(1);
  });

  it.each<["SIGSTOP" | "SIGKILL"]>([["SIGSTOP"], ["SIGKILL"]])(
    "is ended when its node gets %s and does not renew",
    async (signal) => {
      const box = await createBox();
      const node = await startNode(box);
      expect(box.running).toBe(1);
      node.kill(signal);
      await expect.poll(() => box.running).toBe(0);
      // Without a node the record is not kept.
      await expect.poll(() => guard.ended()).toEqual(signal === "SIGSTOP" ? [box.id] : []);
      node.kill("SIGKILL");
    },
  );
});

describe("the lease guard", () => {
  it("runs once for a directory, however often it is started", async () => {
    await Promise.all([guard.start(), guard.start(), new Guard({ directory, graceMs: GRACE_MS }).start()]);
    const pid = guardPid();
    await guard.start();
    expect(guardPid()).toBe(pid);
    expect(await runProgram([findGuard(), directory])).toMatchObject({ exitCode: 0 });
    expect(isRunning(pid)).toBe(true);
  });

  it("survives the signals that end other programs", async () => {
    await guard.start();
    const pid = guardPid();
    for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.kill(pid, signal);
    await nextCheck();
    expect(isRunning(pid)).toBe(true);
    const [, group, session] = /\) \w \d+ (\d+) (\d+)/.exec(await readFile(`/proc/${pid}/stat`, "utf8")) ?? [];
    expect([group, session]).toEqual([String(pid), String(pid)]);
  });

  it("continues with the same leases after it was killed and restarted", async () => {
    await guard.start();
    const [overdue, later] = [await createBox(), await createBox()];
    guard.set(later.id, inMs(60_000));
    const pid = guardPid();
    process.kill(pid, "SIGKILL");
    await expect.poll(() => isRunning(pid)).toBe(false);
    guard.set(overdue.id, inMs(0));
    await guard.start();
    expect(guardPid()).not.toBe(pid);
    await expect.poll(() => overdue.running).toBe(0);
    await expect.poll(() => guard.ended()).toEqual([overdue.id]);
    guard.set(later.id, inMs(0));
    await expect.poll(() => later.running).toBe(0);
  });

  it("stays until the last lease of a dead node has expired, then exits and leaves nothing", async () => {
    const box = await createBox();
    const node = await startNode(box);
    const pid = guardPid();
    node.kill("SIGKILL");
    await once(node, "exit");
    expect(isRunning(pid)).toBe(true);
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(box.running).toBe(0);
    expect(existsSync(directory)).toBe(false);
  });

  it("serves the next node", async () => {
    const box = await createBox();
    const node = await startNode(box);
    const pid = guardPid();
    node.kill("SIGKILL");
    await once(node, "exit");
    await guard.start();
    guard.set(box.id, inMs(60_000));
    expect(guardPid()).toBe(pid);
    guard.remove(box.id);
    await nextCheck();
    expect(isRunning(pid)).toBe(true);
    expect(box.running).toBe(1);
  });

  it("uses about a megabyte", async () => {
    await guard.start();
    const [, kib] = /^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${guardPid()}/status`, "utf8")) ?? [];
    expect(Number(kib)).toBeLessThan(2048);
  });
});

describe("a forged lease", () => {
  it.each<[string, (victim: CgroupBox, id: string) => string | Promise<string>]>([
    ["another cgroup", (victim) => victim.directories[0] ?? ""],
    ["the root", () => "/"],
    ["a relative path", (_, id) => `sandpiper-${id}`],
    [
      "a link to another cgroup",
      async (victim, id) => {
        await symlink(victim.directories[0] ?? "", join(directory, `.${id}`));
        await mkdir(join(directory, ".links"));
        await rename(join(directory, `.${id}`), join(directory, ".links", `sandpiper-${id}`));
        return join(directory, ".links", `sandpiper-${id}`);
      },
    ],
    [
      "a directory that only looks like a cgroup",
      async (victim, id) => {
        const path = join(directory, ".fake", `sandpiper-${id}`);
        await mkdir(path, { recursive: true });
        await writeFile(join(path, "cgroup.procs"), await readFile(join(victim.directories[0] ?? "", "cgroup.procs")));
        return path;
      },
    ],
  ])("kills nothing when it names %s", async (_, pathTo) => {
    const victim = await createBox();
    const id = createSandboxId();
    await forge(id, await pathTo(victim, id));
    expect(victim.running).toBe(1);
    expect(await leases()).toContain(id);
  });

  it("kills nothing when its path has detours, even to its own cgroup", async () => {
    const victim = await createBox();
    await forge(victim.id, `${victim.directories[0]}/..${boxPath(victim.id)}`);
    expect(victim.running).toBe(1);
    expect(await leases()).toContain(victim.id);
  });
});

async function forge(id: string, path: string): Promise<void> {
  await guard.start();
  const draft = join(directory, ".forged");
  await writeFile(draft, JSON.stringify({ deadlineMs: 0, graceMs: 0, targets: [{ cgroup: path }] }));
  await rename(draft, join(directory, id));
  await nextCheck();
}

/** Waits until the guard has checked all leases again. */
async function nextCheck(): Promise<void> {
  const box = await createBox();
  guard.set(box.id, inMs(0));
  await expect.poll(() => guard.ended()).toContain(box.id);
  guard.remove(box.id);
}

async function startNode(box: CgroupBox): Promise<ChildProcess> {
  const node = spawn(process.execPath, [nodeScript, directory, box.id], { stdio: ["ignore", "pipe", "inherit"] });
  await once(node.stdout, "data");
  return node;
}
