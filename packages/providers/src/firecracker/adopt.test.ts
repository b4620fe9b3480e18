import { Sandbox } from "@sandpiper/core";
import { createSandboxId } from "@sandpiper/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FirecrackerProvider } from "./provider.ts";
import { createDoubleFixture, type FirecrackerFixture } from "./testing/fixture.ts";
import { startHostProgram } from "./testing/start-host-program.ts";

let fixture: FirecrackerFixture;
beforeAll(async () => {
  fixture = await createDoubleFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const counting = "for i in $(seq 50); do echo $i; sleep 0.01; done; echo done";

describe("a machine whose program was killed", () => {
  it("goes on running, is adopted by exactly one of several successors, and its output goes on from where its reader stopped", async () => {
    const program = startHostProgram({ fixture, command: counting, readBytes: 6 });
    const { id, process, output } = await program.ready();
    await program.kill();
    expect(output).toMatch(/^1\n2\n3\n/);
    const successors = Array.from({ length: 3 }, () => new FirecrackerProvider(fixture.options));
    const outcomes = await Promise.allSettled(successors.map((provider) => Sandbox.adopt(provider, id)));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused).toHaveLength(2);
    for (const { reason } of refused) expect(reason).toMatchObject({ code: "failed_precondition" });
    const adopted = outcomes.find((outcome) => outcome.status === "fulfilled")?.value;
    const handle = await adopted?.attach(String(process), { offset: output.length });
    let text = output;
    for await (const { bytes } of handle?.output ?? []) text += Buffer.from(bytes).toString();
    const counted = Array.from({ length: 50 }, (_, index) => `${index + 1}\n`).join("");
    expect(text).toBe(`${counted}done\n`);
    await adopted?.destroy();
  });

  it("is not adopted while its program lives, nor is an id that nobody knows", async () => {
    await using sandbox = await fixture.create();
    await expect(fixture.provider.adopt(sandbox.id)).rejects.toMatchObject({ reason: "instance_owned" });
    await expect(fixture.provider.adopt(createSandboxId())).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });
});
