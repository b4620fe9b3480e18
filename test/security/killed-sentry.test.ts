import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { rejection } from "@sandpiper/core/testing";
import { type Client, type Sandbox, Session } from "@sandpiper/sdk";
import { describe, expect, it } from "vitest";
import { machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { freshDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { sandpiper } from "../e2e/run-cli.ts";
import { GvisorHome } from "../node/gvisor-home.ts";
import { NodeProcess } from "../node/node-process.ts";
import { startTwoNodes } from "../node/two-nodes.ts";

const LEASE_MS = 6000;
const TAKEOVER_MS = 60_000;

/** Kills the kernel of a sandbox of gVisor, as the host's OOM killer can. */
async function killSentry({ id }: Pick<Sandbox, "id">): Promise<void> {
  for (const pid of await machineProcesses(id)) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (commandLine.startsWith("runsc-sandbox\0")) process.kill(pid, "SIGKILL");
  }
}

async function createSaved(client: Client, options: Parameters<Client["sandboxes"]["create"]>[0] = {}) {
  const sandbox = await client.sandboxes.create({ memoryMib: 128, ...options });
  await sandbox.exec("echo saved > file");
  const { id: checkpoint } = await sandbox.checkpoint();
  await sandbox.exec("echo lost > file");
  return { sandbox, checkpoint };
}

const crashed = { code: "gone", reason: "instance_crashed", retryable: false, details: { state: "failed" } };

describe("a sandbox of gVisor whose kernel is killed", () => {
  it("returns to its newest checkpoint at its next use, and its clients learn what was lost", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start(home.config());
    const { sandbox, checkpoint } = await createSaved(node.client);
    await using session = await Session.attach(sandbox.id, { url: node.started.url, apiKey: node.started.apiKey });
    const statuses: string[] = [];
    session.on("status", ({ status }) => statuses.push(status));
    const running = rejection(sandbox.exec("echo begun > /tmp/begun; sleep 600"));
    const code = rejection(session.run("sh", "sleep 600"));
    await expect.poll(async () => (await sandbox.exec("pgrep -c sleep; cat /tmp/begun")).stdout).toBe("2\nbegun\n");
    await killSentry(sandbox);
    expect(await running).toMatchObject(crashed);
    expect(await code).toMatchObject({ reason: "instance_crashed", retryable: false });
    expect((await session.run("sh", "cat file; ls /tmp/begun")).stdout).toBe("saved\n");
    expect(statuses).toEqual(expect.arrayContaining(["SANDBOX_MOVED", "SANDBOX_RESTORING", "SANDBOX_RUNNING"]));
    expect((await sandbox.exec("cat file")).stdout).toBe("saved\n");
    const { info } = await node.client.sandboxes.connect(sandbox.id);
    expect(info).toMatchObject({ state: "ready", failure: null, rolledBackTo: { checkpoint } });
    expect(await home.running()).toEqual([sandbox.id]);
    await sandbox.destroy();
    expect(await home.left([sandbox.id])).toEqual([]);
  });

  it("keeps its checkpoints with onFailure keep, and its error has the command that copies the files", async () => {
    await using home = new GvisorHome();
    await using node = await NodeProcess.start(home.config());
    const { sandbox } = await createSaved(node.client, { onFailure: "keep" });
    await killSentry(sandbox);
    await expect.poll(async () => (await node.client.sandboxes.connect(sandbox.id)).info.state).toBe("failed");
    const refusal = await rejection(sandbox.files.readText("file"));
    expect(refusal).toMatchObject({ code: "gone", reason: "sandbox_failed", retryable: false });
    const [, command = ""] = /: (sandpiper cp .+?);/.exec(refusal.hint ?? "") ?? [];
    const { url, apiKey } = node.started;
    const env = { ...process.env, PATH: `${join(sandpiper, "..")}:${process.env["PATH"]}` };
    const cwd = freshDirectory("rescued");
    await promisify(execFile)("sh", ["-c", command.replace("PATH", "file")], {
      cwd,
      env: { ...env, SANDPIPER_URL: url, SANDPIPER_API_KEY: apiKey },
    });
    expect(await readFile(join(cwd, "file"), "utf8")).toBe("saved\n");
    expect((await node.client.sandboxes.connect(sandbox.id)).info.state).toBe("failed");
  });
});

describe("a sandbox of gVisor in a cluster whose kernel is killed", () => {
  it(
    "is restored by its own node, or by another if that node has died as well, and never runs twice",
    async () => {
      await using homes = new AsyncDisposableStack();
      const [own, other] = [homes.use(new GvisorHome()), homes.use(new GvisorHome())];
      const store = `file://${freshDirectory("store")}`;
      await using cluster = await startTwoNodes([own, other], { store, leaseMs: LEASE_MS });
      const { sandbox, checkpoint } = await createSaved(cluster.here);
      const elsewhere = await cluster.there.sandboxes.connect(sandbox.id);
      const { node } = elsewhere.info;
      const running = rejection(elsewhere.exec("touch /tmp/begun; sleep 600"));
      await expect.poll(async () => (await sandbox.exec("ls /tmp")).stdout).toContain("begun");
      await killSentry(sandbox);
      expect(await running).toMatchObject(crashed);
      expect((await elsewhere.exec("cat file")).stdout).toBe("saved\n");
      const restored = await cluster.there.sandboxes.connect(sandbox.id);
      expect(restored.info).toMatchObject({ node, state: "ready", rolledBackTo: { checkpoint } });
      expect([await own.running(), await other.running()]).toEqual([[sandbox.id], []]);

      await sandbox.exec("echo again > file");
      await killSentry(sandbox);
      await cluster.first.kill();
      const moved = await cluster.there.sandboxes.connect(sandbox.id);
      expect((await moved.exec("cat file")).stdout).toBe("saved\n");
      expect((await cluster.there.sandboxes.connect(sandbox.id)).info).toMatchObject({
        state: "ready",
        rolledBackTo: { checkpoint },
      });
      expect(moved.info.node).not.toBe(node);
      expect([await own.running(), await other.running()]).toEqual([[], [sandbox.id]]);
    },
    TAKEOVER_MS,
  );
});
