import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { QemuProvider } from "./provider.ts";
import { createQemuFixture, type QemuFixture } from "./testing/fixture.ts";
import { type HostProgramOptions, startHostProgram } from "./testing/start-host-program.ts";

let fixture: QemuFixture;
beforeAll(async () => {
  fixture = await createQemuFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const counting = "for i in $(seq 50); do echo $i; sleep 0.01; done; echo done";

describe("a machine whose program was killed", () => {
  it("goes on running, and its output is read on from where the reader stopped", async () => {
    const { id, process, output } = await orphan({ command: counting, readBytes: 6 });
    expect(output).toMatch(/^1\n2\n3\n/);
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    const handle = await sandbox.attach(process, { offset: output.length });
    let text = output;
    for await (const { bytes } of handle.output) text += Buffer.from(bytes).toString();
    const counted = Array.from({ length: 50 }, (_, index) => `${index + 1}\n`).join("");
    expect(text).toBe(`${counted}done\n`);
    expect(await handle.wait()).toMatchObject({ exitCode: 0 });
  });

  it("is adopted by exactly one of several successors", async () => {
    const { id } = await orphan({ command: "sleep 60" });
    const successors = Array.from({ length: 3 }, () => new QemuProvider({ stateDirectory: fixture.stateDirectory }));
    const outcomes = await Promise.allSettled(successors.map((provider) => Sandbox.adopt(provider, id)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(2);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: "failed_precondition" });
    const adopted = outcomes.find((outcome) => outcome.status === "fulfilled")?.value;
    expect((await adopted?.exec("echo here"))?.stdout).toBe("here\n");
    await adopted?.destroy();
  });
});

describe("adopting", () => {
  it("refuses a machine whose program lives, and an id that nobody knows", async () => {
    await using sandbox = await fixture.create();
    await expect(fixture.provider.adopt(sandbox.id)).rejects.toMatchObject({ reason: "instance_owned" });
    await expect(fixture.provider.adopt(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });
});

async function orphan(options: Pick<HostProgramOptions, "command" | "readBytes">) {
  const program = startHostProgram({ fixture, ...options });
  const ready = await program.ready();
  await program.kill();
  return { ...ready, process: String(ready.process) };
}
