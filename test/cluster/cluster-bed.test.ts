import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { Abandoned } from "./abandon-bed.ts";
import { ClusterBed } from "./cluster-bed.ts";
import { listNamespaces } from "./namespaces.ts";
import { bedDirectory, removeAbandonedBeds } from "./sweep.ts";

describe("a node in its own network namespace", () => {
  it("runs sandboxes and adopts them after kill -9", async () => {
    await using bed = await ClusterBed.start();
    const [first] = bed.nodes;
    const client = first.client();
    const sandbox = await client.sandboxes.create({ memoryMib: 128 });
    expect((await sandbox.exec("echo $((6 * 7))")).stdout).toBe("42\n");
    await first.kill9();
    await first.start();
    expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
    client.close();
  });

  it("does not answer while it is frozen", async () => {
    await using bed = await ClusterBed.start();
    const [first] = bed.nodes;
    first.freeze();
    await expect(fetch(`${first.url}/health`, { signal: AbortSignal.timeout(300) })).rejects.toThrow();
    first.thaw();
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
  });
});

describe("a node that is cut off the network", () => {
  it("neither reaches other nodes nor is reached until the network is healed", async () => {
    await using bed = await ClusterBed.start();
    const [first, second] = bed.nodes;
    const fetchSecond = "fetch('http://10.77.0.12:4747/health', { signal: AbortSignal.timeout(1000) })";
    const ask = () =>
      first.runInside([process.execPath, "-e", `${fetchSecond}.then(({ status }) => console.log(status))`]);
    expect(await ask()).toBe("200\n");
    await bed.cut(second);
    await expect(ask()).rejects.toThrow(/TimeoutError|EHOSTUNREACH/);
    await expect(fetch(`${second.url}/health`, { signal: AbortSignal.timeout(1000) })).rejects.toThrow();
    expect((await fetch(`${first.url}/health`)).status).toBe(200);
    await bed.heal(second);
    expect(await ask()).toBe("200\n");
  });
});

describe("the bed of a test that was killed with -9", () => {
  const program = fileURLToPath(new URL("abandon-bed.ts", import.meta.url));

  it("is removed before the next bed starts: processes, namespaces and files", async () => {
    const abandoning = spawn(process.execPath, [program], { stdio: ["pipe", "pipe", "inherit"] });
    const { name, pid } = JSON.parse(String((await once(abandoning.stdout, "data"))[0])) as Abandoned;
    const left = async () => [
      existsSync(bedDirectory(name)),
      isRunning(pid),
      (await listNamespaces()).some((namespace) => namespace.startsWith(name)),
    ];
    // Other tests, which start beds meanwhile, remove it only once its program is dead.
    await expect.poll(left).toEqual([true, true, true]);
    abandoning.kill("SIGKILL");
    await once(abandoning, "exit");
    await removeAbandonedBeds();
    await expect.poll(left).toEqual([false, false, false]);
  });

  it("is kept while its process is alive", async () => {
    await using bed = await ClusterBed.start();
    await removeAbandonedBeds();
    expect((await fetch(`${bed.url}/health`)).status).toBe(200);
  });
});

/** A zombie process has no command line. */
function isRunning(pid: number | undefined): boolean {
  return existsSync(`/proc/${pid}/cmdline`) && readFileSync(`/proc/${pid}/cmdline`, "utf8") !== "";
}
