import { describe, expect, it } from "vitest";
import { GvisorHome } from "./gvisor-home.ts";
import { InstalledPrograms } from "./installed-programs.ts";
import { NodeProcess } from "./node-process.ts";
import { collectOutput, countTo, numbersTo } from "./numbered-output.ts";

describe("a node after an upgrade that replaced gVisor and the agent", () => {
  it("adopts, saves, restores and forks sandboxes of the earlier release, and starts new ones with the new release", async () => {
    await using home = new GvisorHome();
    using programs = await InstalledPrograms.install();
    const { env } = programs;
    const before = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" }, env);
    const running = await before.client.sandboxes.create();
    const counter = await running.start(countTo(100));
    const paused = await before.client.sandboxes.create();
    const sleeper = await paused.start("sleep 1; cat kept; exit 7");
    await paused.files.write("kept", "kept");
    await paused.pause();
    await before.stop();
    const next = programs.upgrade();

    await using after = await NodeProcess.start({ home: home.path, port: 0, logLevel: "warn" }, env);
    const { sandboxes } = after.client;
    expect(after.started.adopted).toEqual([running.id]);
    const woken = await sandboxes.connect(paused.id);
    expect(await (await woken.attach(sleeper.id)).wait()).toMatchObject({ exitCode: 7 });

    const adopted = await sandboxes.connect(running.id);
    const output = collectOutput(await adopted.attach(counter.id));
    await adopted.pause();
    await adopted.resume();
    const [fork] = await adopted.fork();
    expect((await fork?.exec("echo forked"))?.stdout).toBe("forked\n");
    expect(await output.ended).toBe(numbersTo(100));

    const fresh = await sandboxes.create();
    const releases = await Promise.all(
      [woken, adopted, fork, fresh].map(async (each) => (await each?.checkpoint())?.requirements["runtime"]),
    );
    expect(releases).toEqual([programs.release, programs.release, programs.release, next].map((one) => `runsc ${one}`));
    for (const each of [woken, adopted, fork, fresh]) await each?.destroy();
  });
});
