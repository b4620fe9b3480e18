import { renameSync } from "node:fs";
import { join } from "node:path";
import { loadNodeConfig, openReleases } from "@sandpiper/node/server";
import { rejection } from "@sandpiper/protocol/testing";
import { Client } from "@sandpiper/sdk";
import { afterEach, describe, expect, it, vi } from "vitest";
import { freePort } from "../../packages/node/src/store/testing/free-port.ts";
import { GvisorHome } from "./gvisor-home.ts";
import { InstalledPrograms } from "./installed-programs.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput, countTo, numbersTo } from "./numbered-output.ts";

afterEach(() => vi.unstubAllEnvs());

const start = (home: GvisorHome, { env }: InstalledPrograms) =>
  NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" }, env);

describe("a node after an upgrade that replaced gVisor and the agent", () => {
  it("adopts, saves, restores and forks sandboxes of the earlier release, and starts new ones with the new release", async () => {
    using programs = await InstalledPrograms.install();
    await using home = new GvisorHome();
    const before = await start(home, programs);
    const running = await before.client.sandboxes.create();
    const counter = await running.start(countTo(40));
    const paused = await before.client.sandboxes.create();
    const sleeper = await paused.start("sleep 0.5; cat kept; exit 7");
    await paused.pause();
    await before.stop();
    const next = programs.upgrade();

    await using after = await start(home, programs);
    const { sandboxes } = after.client;
    expect(after.started.adopted).toEqual([running.id]);
    const woken = await sandboxes.connect(paused.id);
    expect((await (await woken.attach(sleeper.id)).wait()).exitCode).toBe(7);

    const adopted = await sandboxes.connect(running.id);
    const output = collectOutput(await adopted.attach(counter.id));
    await adopted.pause();
    await adopted.resume();
    const [fork] = await adopted.fork();
    expect((await fork?.exec("echo forked"))?.stdout).toBe("forked\n");
    expect(await output.ended).toBe(numbersTo(40));

    const fresh = await sandboxes.create();
    const all = [woken, adopted, fork, fresh];
    const used = await Promise.all(all.map(async (each) => (await each?.checkpoint())?.requirements["runtime"]));
    expect(used).toEqual([programs.release, programs.release, programs.release, next].map((one) => `runsc ${one}`));
    for (const each of all) await each?.destroy();
  });

  it("names a release that it lacks and restores the sandbox once it has it, and removes it when nothing needs it", async () => {
    using programs = await InstalledPrograms.install();
    await using home = new GvisorHome();
    const before = await start(home, programs);
    const paused = await before.client.sandboxes.create();
    await paused.files.write("kept", "kept");
    await paused.pause();
    await before.stop();
    const next = programs.upgrade();

    const after = await start(home, programs);
    const sandbox = await after.client.sandboxes.connect(paused.id);
    for (const [name, path] of Object.entries(programs.env)) vi.stubEnv(name, path);
    const releases = openReleases(await loadNodeConfig({ argv: [], env: { SANDPIPER_HOME: home.path } }));
    const runscs = async () => (await releases.list()).filter(({ program }) => program === "runsc");
    expect(await runscs()).toMatchObject([
      { version: programs.release, isCurrent: false, instances: [], sandboxes: [paused.id] },
      { version: next, isCurrent: true, instances: [], sandboxes: [] },
    ]);

    const elsewhere = join(home.path, "elsewhere");
    renameSync(join(home.path, "node/gvisor/programs/runsc", programs.release), elsewhere);
    expect(await rejection(sandbox.resume())).toMatchObject({
      reason: "incompatible_node",
      hint: expect.stringContaining(
        `keep runsc release ${programs.release} on this node with \`sandpiper releases add`,
      ),
    });
    await releases.add(join(elsewhere, "runsc"));
    await sandbox.resume();
    expect(await sandbox.files.readText("kept")).toBe("kept");
    await sandbox.destroy();
    await after.stop();

    await using _ = await start(home, programs);
    await expect.poll(runscs).toMatchObject([{ version: next, isCurrent: true }]);
  });
});

describe("a cluster that is upgraded node by node", () => {
  it("keeps a sandbox and its running command: it moves to a node of the earlier release, and to the upgraded one", async () => {
    using programs = await InstalledPrograms.install();
    using earlier = await InstalledPrograms.install();
    await using a = new GvisorHome();
    await using b = new GvisorHome();
    const store = `file://${join(a.path, "shared")}`;
    const startMember = async (home: GvisorHome, { env }: InstalledPrograms) => {
      const settings = { store, clusterSecret: "a secret of a test, long enough", maxSkewMs: 0, leaseMs: 3000 };
      return NodeProcess.start({ home: home.path, port: await freePort(), logLevel: "error", ...settings }, env);
    };
    const firstA = await startMember(a, programs);
    const { apiKey } = firstA.started;
    const through = ({ started }: NodeProcess) => new Client({ url: started.url, apiKey }).sandboxes;
    const sandbox = await firstA.client.sandboxes.create();
    const counter = await sandbox.start(countTo(40));

    const [nodeB] = await Promise.all([startMember(b, earlier), firstA.stop()]);
    await using _ = nodeB;
    const next = programs.upgrade();
    const onB = await through(nodeB).connect(sandbox.id);
    const [secondA, greeting] = await Promise.all([startMember(a, programs), onB.exec("echo on b")]);
    await using upgraded = secondA;
    expect(greeting.stdout).toBe("on b\n");

    await nodeB.stop();
    const again = await through(upgraded).connect(sandbox.id);
    expect(await collectOutput(await again.attach(counter.id)).ended).toBe(numbersTo(40));
    expect((await again.checkpoint()).requirements["runtime"]).toBe(`runsc ${programs.release}`);
    const fresh = await through(upgraded).create();
    expect((await fresh.checkpoint()).requirements["runtime"]).toBe(`runsc ${next}`);
    for (const each of [again, fresh]) await each.destroy();
  });
});
