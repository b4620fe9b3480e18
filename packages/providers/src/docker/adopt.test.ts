import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HostProgramOptions } from "../host/testing/start-host-program.ts";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

/** Counts to a hundred in about a second, then says so. */
const counting = "for i in $(seq 100); do echo $i; sleep 0.01; done; echo done";

describe("a container whose program was killed", () => {
  it("goes on running, and its output is read on from where the reader stopped", async () => {
    const { id, process, output } = await orphan({ command: counting, readBytes: 6 });
    expect(output).toMatch(/^1\n2\n3\n/);
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    const handle = await sandbox.attach(process, { offset: output.length });
    let text = output;
    for await (const { bytes } of handle.output) text += Buffer.from(bytes).toString();
    const counted = Array.from({ length: 100 }, (_, index) => `${index + 1}\n`).join("");
    expect(text).toBe(`${counted}done\n`);
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    expect((await sandbox.exec("echo and more")).stdout).toBe("and more\n");
  });

  it("is found again though its program was in the middle of sending much", async () => {
    const { id } = await orphan({ command: "head -c 50000000 /dev/zero; sleep 60", readBytes: 1_000_000 });
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    expect((await sandbox.exec("echo in order")).stdout).toBe("in order\n");
  });

  it("is adopted by exactly one of several successors", async () => {
    const { id } = await orphan({ command: "sleep 60" });
    const successors = Array.from({ length: 4 }, () => fixture.newProvider());
    const outcomes = await Promise.allSettled(successors.map((provider) => provider.adopt(id)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(3);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: "failed_precondition" });
    for (const outcome of outcomes) if (outcome.status === "fulfilled") await outcome.value.destroy();
  });

  it("is still there for its next program after the second was killed, too", async () => {
    const first = await orphan({ command: "sleep 60" });
    const adopter = startHostProgram(fixture, { adopt: first.id, command: "sleep 61" });
    const second = await adopter.ready();
    await adopter.kill();
    await using sandbox = await Sandbox.adopt(fixture.provider, first.id);
    const running = (await sandbox.processes()).map(({ id }) => id);
    expect(running.toSorted()).toEqual([first.process, second.process].toSorted());
  });
});

describe("adopting a container", () => {
  it("is refused while its program lives", async () => {
    await using sandbox = await fixture.create();
    for (const provider of [fixture.provider, fixture.newProvider()]) {
      await expect(provider.adopt(sandbox.id)).rejects.toMatchObject({ reason: "instance_owned" });
    }
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });

  it("is refused for an id that nobody knows", async () => {
    await expect(fixture.provider.adopt(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
  });

  it("is refused for one that has ended, and possible again when it was started again", async () => {
    const sandbox = await fixture.create();
    await sandbox.exec("echo kept > kept");
    await fixture.provider.containers.stop(sandbox.id, { timeoutMs: 0 });
    await sandbox.closed;
    await expect(fixture.provider.adopt(sandbox.id)).rejects.toMatchObject({ reason: "instance_ended" });
    await fixture.provider.containers.start(sandbox.id);
    await using again = await Sandbox.adopt(fixture.provider, sandbox.id);
    expect(await again.readTextFile("kept")).toBe("kept\n");
  });

  it("leaves alone what another home has on the same engine", async () => {
    await using sandbox = await fixture.create();
    const other = fixture.newProvider({ stateDirectory: `${fixture.stateDirectory}/other` });
    expect(await other.list()).toEqual([]);
    await expect(other.adopt(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    await other.remove(sandbox.id);
    await expect(other.containers.get(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });
});

async function orphan(options: Pick<HostProgramOptions, "command" | "readBytes">) {
  const program = startHostProgram(fixture, options);
  const ready = await program.ready();
  await program.kill();
  return { ...ready, process: String(ready.process) };
}
