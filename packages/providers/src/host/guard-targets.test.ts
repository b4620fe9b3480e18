import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createServer as createSilentServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Guard } from "./guard.ts";
import type { KillTarget } from "./kill-list.ts";
import { CgroupBox } from "./testing/cgroup-box.ts";

const GRACE_MS = 400;
const HOME = "0123456789ab";

let directory: string;
let guard: Guard;
let undo: AsyncDisposableStack;
beforeEach(async () => {
  undo = new AsyncDisposableStack();
  directory = await mkdtemp(join(tmpdir(), "sandpiper-guard-"));
  undo.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
  guard = new Guard({ directory, graceMs: GRACE_MS });
  await guard.start();
});
afterEach(() => undo.disposeAsync());

const inMs = (delayMs: number) => systemClock.monotonicMs() + delayMs;
const guardPid = () => Number.parseInt(readFileSync(join(directory, ".guard"), "utf8"), 10);

async function createBox(): Promise<CgroupBox> {
  const box = await CgroupBox.create();
  undo.defer(() => box.remove());
  return box;
}

function expire(id: SandboxId, targets: readonly KillTarget[]): void {
  guard.killList.set(id, targets);
  guard.set(id, inMs(0));
}

/** Serves on a socket in the guard's directory and returns its path. */
async function listen(server: Pick<Server, "listen" | "close">): Promise<string> {
  const path = join(directory, ".engine");
  await new Promise<void>((resolve) => void server.listen(path, resolve));
  undo.defer(() => void server.close());
  return path;
}

/** An engine that accepts connections and never answers. */
const listenSilently = () => listen(createSilentServer(() => {}) as unknown as Server);

/** An engine with running containers, which records what it is asked to kill. */
async function startEngine(containers: string[]) {
  const asked: string[] = [];
  const server = createServer(({ method, url = "" }, response) => {
    const { pathname, searchParams } = new URL(url, "http://engine");
    if (method === "GET") {
      asked.push(searchParams.get("filters") ?? "");
      return void response.end(JSON.stringify(containers.map((Id) => ({ Id }))));
    }
    asked.push(`${method} ${pathname}`);
    containers.splice(0);
    response.writeHead(204).end();
  });
  return { asked, path: await listen(server) };
}

const containersAt = (address: string, machine?: CgroupBox): KillTarget => ({
  containers: {
    engine: { address, apiVersion: "1.51" },
    home: HOME,
    ...(machine === undefined ? {} : { machine: { cgroups: machine.directories } }),
  },
});

describe("the lease guard", () => {
  it("kills the running containers that carry the labels of the sandbox and its home", async () => {
    const { asked, path } = await startEngine(["c0ffee"]);
    const id = createSandboxId();
    expire(id, [containersAt(path)]);
    await expect.poll(() => guard.ended()).toEqual([id]);
    const labels = JSON.stringify({ label: [`sandpiper.sandbox=${id}`, `sandpiper.home=${HOME}`] });
    expect(asked.slice(0, 3)).toEqual([labels, "POST /v1.51/containers/c0ffee/kill", labels]);
  });

  it("kills a container that starts only after the lease has expired", async () => {
    const containers: string[] = [];
    const { asked, path } = await startEngine(containers);
    const id = createSandboxId();
    expire(id, [containersAt(path)]);
    await expect.poll(() => guard.ended()).toEqual([id]);
    containers.push("1a7e");
    await expect.poll(() => asked).toContain("POST /v1.51/containers/1a7e/kill");
  });

  it("kills other instances while an engine hangs, and does not report the hanging one as ended", async () => {
    const hanging = createSandboxId();
    expire(hanging, [containersAt(await listenSilently())]);
    const box = await createBox();
    expire(box.id, box.targets);
    await expect.poll(() => guard.ended()).toEqual([box.id]);
    expect(existsSync(join(directory, hanging))).toBe(true);
  });

  it("kills the machine of an engine that does not answer", async () => {
    const machine = await createBox();
    const id = createSandboxId();
    expire(id, [containersAt(await listenSilently(), machine)]);
    await expect.poll(() => machine.running).toBe(0);
    await expect.poll(() => guard.ended()).toEqual([id]);
  });

  it("leaves the machine of an engine that kills its container to the other sandboxes", async () => {
    const machine = await createBox();
    const { asked, path } = await startEngine(["c0ffee"]);
    const id = createSandboxId();
    expire(id, [containersAt(path, machine)]);
    await expect.poll(() => guard.ended()).toEqual([id]);
    // The engine has been asked again after the time in which it had to answer.
    await expect.poll(() => asked.length).toBeGreaterThan(4);
    expect(machine.running).toBe(1);
  });

  it("runs a command that kills, and repeats it until it succeeds", async () => {
    const id = createSandboxId();
    const marks = join(directory, ".marks");
    expire(id, [{ command: ["/bin/sh", "-c", `echo $1 >> ${marks}; [ $(wc -l < ${marks}) -ge 3 ]`, "kill", id] }]);
    await expect.poll(() => guard.ended()).toEqual([id]);
    expect(readFileSync(marks, "utf8")).toBe(`${id}\n`.repeat(3));
  });

  it("kills the newest targets of a sandbox without waiting for a renewal", async () => {
    const [first, second] = [await createBox(), await createBox()];
    guard.killList.set(second.id, []);
    guard.set(second.id, inMs(500));
    guard.killList.set(second.id, second.targets);
    await expect.poll(() => guard.ended()).toEqual([second.id]);
    expect([first.running, second.running]).toEqual([1, 0]);
  });

  it("keeps the targets of an earlier process of the node until its instances are adopted", async () => {
    const box = await createBox();
    guard.killList.set(box.id, box.targets);
    guard.set(box.id, inMs(60_000));
    const next = new Guard({ directory, graceMs: GRACE_MS });
    await next.start();
    next.set(box.id, inMs(0));
    await expect.poll(() => box.running).toBe(0);
  });

  it("is replaced if another version of Sandpiper started it, and its leases are kept", async () => {
    const box = await createBox();
    guard.killList.set(box.id, box.targets);
    guard.set(box.id, inMs(60_000));
    const pid = guardPid();
    const [own, ticks, boot] = readFileSync(join(directory, ".guard"), "utf8").split(" ");
    await writeFile(join(directory, ".guard"), `${own} ${ticks} ${boot}\n`);
    await guard.start();
    expect(guardPid()).not.toBe(pid);
    guard.set(box.id, inMs(0));
    await expect.poll(() => box.running).toBe(0);
  });
});
