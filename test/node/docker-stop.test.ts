import { rejection } from "@sandpiper/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { freshDirectory, shared } from "../../packages/providers/src/host/testing/shared.ts";
import { runCli } from "../e2e/run-cli.ts";
import { DockerHome, LOST, SHOW, write } from "./docker-home.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput } from "./numbered-output.ts";
import { startTwoNodes } from "./two-nodes.ts";

const [docker, other] = await Promise.all([shared(DockerHome.start()), shared(DockerHome.start({ hasImage: false }))]);
afterEach(async () => expect([await docker.left(), await other.left()]).toEqual([[], []]));

const STOPPED = { code: "failed_precondition", reason: "stopped_by_owner" };
/** Takes a while to end after SIGTERM, and writes that it did. */
const GRACEFUL = "trap 'sleep 0.3; echo ended > /.data/end; exit 0' TERM; echo up; while true; do sleep 0.05; done";
const STUBBORN = "trap '' TERM; echo up; while true; do sleep 0.05; done";

describe("a sandbox on Docker that its owner stops", () => {
  it("ends its processes gracefully, keeps all files, and refuses use until it is started", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create();
    await sandbox.exec(write("kept"));
    const process = await sandbox.start(GRACEFUL);
    const output = collectOutput(process);
    await expect.poll(output.lines).toBe(1);
    const exit = process.wait();
    expect(await sandbox.stop()).toMatchObject({ state: "stopped", stoppedAt: expect.any(String) });
    expect(await exit).toMatchObject({ exitCode: 0 });
    const refusal = await rejection(sandbox.exec("true"));
    expect(refusal).toMatchObject(STOPPED);
    expect(refusal.hint).toContain("sandpiper start");
    for (const refused of [sandbox.checkpoint(), sandbox.rebuild(), sandbox.resume()]) {
      expect(await rejection(refused)).toMatchObject({ code: "failed_precondition" });
    }
    expect((await sandbox.stop()).state).toBe("stopped");

    expect(await sandbox.start()).toMatchObject({ state: "ready", stoppedAt: null });
    expect((await sandbox.exec(`${SHOW} /.data/end`)).stdout).toBe("kept\nkept\nended\n");
    expect(await rejection(sandbox.attach(process.id))).toMatchObject(LOST);
    expect((await sandbox.start()).state).toBe("ready");
    const kinds = (await node.client.pastEvents({ sandbox: sandbox.id })).map(({ kind }) => kind);
    expect(kinds.filter((kind) => /stopped|started|failed/.test(kind) && kind.startsWith("sandbox."))).toEqual([
      "sandbox.stopped",
      "sandbox.started",
    ]);
    await sandbox.destroy();
  });

  it("is killed after the timeout, through the command line, and removed while it is stopped", async () => {
    await using node = await NodeProcess.start(docker.config());
    const sandbox = await node.client.sandboxes.create({ name: "stubborn" });
    const output = collectOutput(await sandbox.start(STUBBORN));
    await expect.poll(output.lines).toBe(1);
    const env = { SANDPIPER_URL: node.started.url, SANDPIPER_API_KEY: node.started.apiKey };
    expect(await runCli(["stop", "--timeout", "0.1", "stubborn"], { env })).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await sandbox.refresh()).state).toBe("stopped");
    const refused = await runCli(["exec", "stubborn", "--", "true"], { env });
    expect([refused.exitCode, refused.stderr]).toEqual([125, expect.stringContaining("sandpiper start")]);
    expect(await runCli(["start", "stubborn"], { env })).toMatchObject({ exitCode: 0, stderr: "" });
    expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
    await sandbox.stop({ timeoutMs: 0 });
    await sandbox.destroy();
  });

  it("stays stopped when its node is killed and restarted, and can then be started", async () => {
    const config = docker.config();
    const node = await NodeProcess.start(config);
    const { id } = await node.client.sandboxes.create();
    const sandbox = await node.client.sandboxes.connect(id);
    await sandbox.exec(write("kept"));
    const { stoppedAt } = await sandbox.stop({ timeoutMs: 0 });
    await node.kill();
    await using next = await NodeProcess.start(config);
    const found = await next.client.sandboxes.connect(id);
    expect(found.info).toMatchObject({ state: "stopped", stoppedAt });
    expect(await rejection(found.exec("true"))).toMatchObject(STOPPED);
    await found.start();
    expect((await found.exec(SHOW)).stdout).toBe("kept\nkept\n");
    await found.destroy();
  });

  it("is stopped by the next start of its node if the node was killed during the stop", async () => {
    const config = docker.config();
    const node = await NodeProcess.start(config);
    const { id } = await node.client.sandboxes.create();
    const sandbox = await node.client.sandboxes.connect(id);
    await sandbox.exec(write("kept"));
    const output = collectOutput(await sandbox.start(STUBBORN));
    await expect.poll(output.lines).toBe(1);
    const leaving = new AbortController();
    const stopping = rejection(sandbox.stop({ timeoutMs: 600_000, signal: leaving.signal }));
    await expect.poll(async () => (await sandbox.refresh()).state).toBe("stopped");
    await node.kill();
    leaving.abort();
    expect(await stopping).toMatchObject({ code: "canceled" });
    await using next = await NodeProcess.start(config);
    const found = await next.client.sandboxes.connect(id);
    expect(found.info.state).toBe("stopped");
    await found.start();
    expect((await found.exec(SHOW)).stdout).toBe("kept\nkept\n");
    expect((await found.processes()).length).toBe(0);
    await found.destroy();
  });

  it("moves to another node with its files, and runs there", async () => {
    const store = freshDirectory("docker-stop-move-store");
    await using cluster = await startTwoNodes([docker, other], { store: `file://${store}`, leaseMs: 4000 });
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("moved"));
    await sandbox.stop({ timeoutMs: 0 });
    const to = (await cluster.there.nodes.list()).find(({ isThisNode }) => isThisNode)?.id;
    expect(await sandbox.moveTo(to)).toMatchObject({ state: "ready", stoppedAt: null, node: to, rolledBackTo: null });
    expect((await sandbox.exec(SHOW)).stdout).toBe("moved\nmoved\n");
    await sandbox.destroy();
  });

  it("stays stopped when its node drains, and starts on another node", async () => {
    const store = freshDirectory("docker-stop-store");
    await using cluster = await startTwoNodes([docker, other], { store: `file://${store}`, leaseMs: 4000 });
    const sandbox = await cluster.here.sandboxes.create();
    await sandbox.exec(write("kept"));
    await sandbox.stop({ timeoutMs: 0 });
    await cluster.first.stop();
    expect(await docker.left()).toEqual([]);
    const found = await cluster.there.sandboxes.connect(sandbox.id);
    expect(found.info).toMatchObject({ state: "stopped", stoppedAt: expect.any(String), node: null });
    expect(await rejection(found.exec("true"))).toMatchObject(STOPPED);
    expect(await found.start()).toMatchObject({ state: "ready", stoppedAt: null, rolledBackTo: null });
    expect((await found.exec(SHOW)).stdout).toBe("kept\nkept\n");
    await found.destroy();
  });
});
