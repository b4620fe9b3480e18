import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDockerFixture, type DockerFixture } from "./testing/fixture.ts";

let fixture: DockerFixture;
beforeAll(async () => {
  fixture = await createDockerFixture();
}, 300_000);
afterAll(() => fixture?.[Symbol.asyncDispose]());

describe("a container as a sandbox", () => {
  it("is created, runs a command and is destroyed", async () => {
    const sandbox = await fixture.create({ memoryMib: 256 });
    expect((await sandbox.exec("echo hello; id -un")).stdout).toBe("hello\nuser\n");
    await sandbox.destroy();
    expect(await fixture.engine.docker.listContainers({ all: true })).toEqual([]);
  });
});
