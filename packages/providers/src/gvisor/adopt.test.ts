import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GvisorProvider } from "./provider.ts";
import { createGvisorFixture, type GvisorFixture } from "./testing/fixture.ts";
import { type HostProgramOptions, startHostProgram } from "./testing/start-host-program.ts";

let fixture: GvisorFixture;
beforeAll(async () => {
  fixture = await createGvisorFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Counts to a hundred in about a second, then says so. */
const counting = "for i in $(seq 100); do echo $i; sleep 0.01; done; echo done";

describe("a sandbox whose program was killed", () => {
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

  it("keeps its files", async () => {
    const { id } = await orphan({ command: "echo kept > kept; sleep 60" });
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    await expect.poll(() => sandbox.readTextFile("kept")).toBe("kept\n");
  });

  it("is adopted by exactly one of several successors", async () => {
    const { id } = await orphan({ command: "sleep 60" });
    const successors = Array.from({ length: 4 }, () => new GvisorProvider({ stateDirectory: fixture.stateDirectory }));
    const outcomes = await Promise.allSettled(successors.map((provider) => provider.adopt(id)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(3);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: "failed_precondition" });
    await fixture.provider.remove(id);
  });

  it("is still there for its next program after the second was killed, too", async () => {
    const first = await orphan({ command: "sleep 60" });
    const adopter = startHostProgram({ ...fixture, adopt: first.id, command: "sleep 61" });
    const second = await adopter.ready();
    await adopter.kill();
    await using sandbox = await Sandbox.adopt(fixture.provider, first.id);
    const running = (await sandbox.processes()).map(({ id }) => id);
    expect(running.toSorted()).toEqual([first.process, second.process].toSorted());
  });
});

describe("adopting", () => {
  it("refuses a sandbox whose program lives", async () => {
    await using sandbox = await fixture.create();
    await expect(fixture.provider.adopt(sandbox.id)).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "instance_owned",
    });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });

  it("refuses an id that nobody knows", async () => {
    await expect(fixture.provider.adopt(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
  });
});

async function orphan(options: Pick<HostProgramOptions, "command" | "readBytes">) {
  const program = startHostProgram({ ...fixture, ...options });
  const ready = await program.ready();
  await program.kill();
  return { ...ready, process: String(ready.process) };
}
