import { Sandbox } from "@sandpiper/core";
import { createSandboxId, type SandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GvisorProvider } from "./provider.ts";
import { createGvisorFixture, type GvisorFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

let fixture: GvisorFixture;
beforeAll(async () => {
  fixture = await createGvisorFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Counts to a hundred in about a second, then says so. */
const counting = "for i in $(seq 100); do echo $i; sleep 0.01; done; echo done";

describe("a sandbox whose program was killed", () => {
  it("goes on running, and its output is read on from where the reader stopped", async () => {
    const { id, process } = await orphan(counting);
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    const offset = "1\n2\n3\n".length;
    const handle = await sandbox.attach(process, { offset });
    let text = "";
    for await (const { bytes } of handle.output) text += Buffer.from(bytes).toString();
    const rest = Array.from({ length: 97 }, (_, index) => `${index + 4}\n`).join("");
    expect(text).toBe(`${rest}done\n`);
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
    expect((await sandbox.exec("echo and more")).stdout).toBe("and more\n");
  });

  it("keeps its files", async () => {
    const { id } = await orphan("echo kept > kept; sleep 60");
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    await expect.poll(() => sandbox.readTextFile("kept")).toBe("kept\n");
  });

  it("is adopted by exactly one of several successors", async () => {
    const { id } = await orphan("sleep 60");
    const successors = Array.from({ length: 4 }, () => new GvisorProvider({ stateDirectory: fixture.stateDirectory }));
    const outcomes = await Promise.allSettled(successors.map((provider) => provider.adopt(id)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(3);
    for (const { reason } of refused) expect(reason).toMatchObject({ reason: "instance_owned" });
    await fixture.provider.remove(id);
  });

  it("is still there for its next program after the second was killed, too", async () => {
    const first = await orphan("sleep 60");
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

async function orphan(command: string): Promise<{ id: SandboxId; process: string }> {
  const program = startHostProgram({ ...fixture, command });
  const { id, process } = await program.ready();
  await program.kill();
  return { id, process: String(process) };
}
