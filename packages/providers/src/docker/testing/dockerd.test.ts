import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { connectTo, startSleeper } from "./connect.ts";
import { type Dockerd, type DockerdOptions, startDockerd } from "./dockerd.ts";
import { findProcesses } from "./processes.ts";
import { BRIDGE_FILE } from "./sweep-dockerd.ts";

/** Possible leftovers of a daemon: all contain its name. */
async function tracesOf(directory: string): Promise<string[]> {
  const name = directory.slice(directory.lastIndexOf("/") + 1);
  const mounts = (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => line.includes(name));
  const isLeft = (text: string) => text.includes(name) && !/\) Z /.test(text);
  const processes = await findProcesses(["stat", "cmdline", "environ", "cgroup"], isLeft);
  const hierarchies = ["", ...(await readdir("/sys/fs/cgroup"))].map((entry) => `/sys/fs/cgroup/${entry}/${name}`);
  const paths = [directory, ...hierarchies].filter((path) => existsSync(path));
  return [...mounts, ...processes.map((pid) => `process ${pid}`), ...paths];
}

async function withContainer(options: DockerdOptions, use: (dockerd: Dockerd, container: string) => Promise<void>) {
  const dockerd = await startDockerd(options);
  try {
    using engine = await connectTo(dockerd);
    await use(dockerd, (await startSleeper(engine)).id);
  } finally {
    await dockerd[Symbol.asyncDispose]();
  }
  expect(await tracesOf(dockerd.directory)).toEqual([]);
}

async function stateOf(dockerd: Dockerd, id: string) {
  using engine = await connectTo(dockerd);
  return (await engine.docker.getContainer(id).inspect()).State;
}

describe("the tests' own Docker Engine", () => {
  it("leaves nothing of a running container after dispose", { timeout: 300_000 }, async () => {
    await withContainer({}, async (dockerd, id) => {
      expect((await tracesOf(dockerd.directory)).length).toBeGreaterThan(3);
      expect((await stateOf(dockerd, id)).Running).toBe(true);
    });
  });

  it("leaves nothing of a paused container", async () => {
    await withContainer({}, async (dockerd, id) => {
      using engine = await connectTo(dockerd);
      await engine.docker.getContainer(id).pause();
      await dockerd.kill();
    });
  });

  it("is cleaned up by the next one when its test run was killed", async () => {
    const script = `
      const { startDockerd } = await import(${JSON.stringify(new URL("dockerd.ts", import.meta.url))});
      const { connectTo, startSleeper } = await import(${JSON.stringify(new URL("connect.ts", import.meta.url))});
      const dockerd = await startDockerd({ liveRestore: true, bridge: true });
      await startSleeper(await connectTo(dockerd));
      console.log(dockerd.directory);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const directory = String((await once(child.stdout, "data"))[0]).trim();
    child.kill("SIGKILL");
    await once(child, "exit");
    expect((await tracesOf(directory)).length).toBeGreaterThan(3);
    await using _ = await startDockerd();
    expect(await tracesOf(directory)).toEqual([]);
  });

  it("has its own bridge, and removes the bridges that it created", async () => {
    let bridges: string[] = [];
    await withContainer({ bridge: true }, async (dockerd) => {
      using engine = await connectTo(dockerd);
      const { IPAM } = await engine.docker.getNetwork("bridge").inspect();
      expect(IPAM?.Config?.[0]?.Gateway).toBe(dockerd.bridgeAddress);
      const { id } = await engine.docker.createNetwork({ Name: "another" });
      await startSleeper(engine, { NetworkMode: "another" });
      bridges = [await readFile(join(dockerd.directory, BRIDGE_FILE), "utf8"), `br-${id.slice(0, 12)}`];
      expect(bridges.filter(isInterface)).toEqual(bridges);
    });
    expect(bridges.filter(isInterface)).toEqual([]);
  });
});

function isInterface(name: string): boolean {
  return existsSync(`/sys/class/net/${name}`);
}
