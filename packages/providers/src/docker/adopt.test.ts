import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { createDockerFixture } from "./testing/fixture.ts";

const fixture = await shared(createDockerFixture());

describe("the docker provider", () => {
  it("adopts a container whose program was killed while it read a large output", async () => {
    const program = fixture.startProgram({
      command: "head -c 50000000 /dev/zero; sleep 60",
      readBytes: 1_000_000,
    });
    const { id } = await program.ready();
    await program.kill();
    await using sandbox = await Sandbox.adopt(fixture.provider, id);
    expect((await sandbox.exec("echo in order")).stdout).toBe("in order\n");
  });

  it("refuses to adopt a stopped container, and adopts it once it is started again", async () => {
    const sandbox = await fixture.create();
    await sandbox.exec("echo kept > kept");
    await fixture.provider.containers.stop(sandbox.id, { timeoutMs: 0 });
    await sandbox.closed;
    await expect(fixture.provider.adopt(sandbox.id)).rejects.toMatchObject({ reason: "instance_ended" });
    await fixture.provider.containers.start(sandbox.id);
    await using again = await Sandbox.adopt(fixture.provider, sandbox.id);
    expect(await again.readTextFile("kept")).toBe("kept\n");
  });

  it("leaves alone the containers of another home on the same engine", async () => {
    await using sandbox = await fixture.create();
    const other = fixture.newProvider({ stateDirectory: `${fixture.stateDirectory}/other` });
    expect(await other.list()).toEqual([]);
    await expect(other.adopt(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    await other.remove(sandbox.id);
    await expect(other.containers.get(sandbox.id)).rejects.toMatchObject({ code: "not_found" });
    expect((await sandbox.exec("echo untouched")).stdout).toBe("untouched\n");
  });
});
