import { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { shared } from "../../host/testing/shared.ts";
import { createDockerFixture } from "../testing/fixture.ts";
import { packArchive } from "../testing/test-image.ts";

const fixture = await shared(createDockerFixture());

const volumes = async () => {
  const { Volumes } = await fixture.engine.docker.listVolumes();
  return Volumes.filter(({ Name }) => Name.startsWith("sandpiper-agent-"));
};

describe("the agent's volume", () => {
  it("is filled for the first sandbox, shared by the others, and kept after them", async () => {
    const sandboxes = await Promise.all([fixture.create(), fixture.create()]);
    const [volume, ...others] = await volumes();
    expect(others).toEqual([]);
    expect(volume?.Name).toMatch(/^sandpiper-agent-[0-9a-f]{16}$/);
    expect(volume?.Labels).toEqual({ "sandpiper.managed": "true" });
    await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
    expect(await volumes()).toEqual([volume]);
    expect(await fixture.engine.docker.listContainers({ all: true })).toEqual([]);
  });

  it("is reused by the next program", async () => {
    const provider = fixture.newProvider();
    await using sandbox = await Sandbox.create(provider);
    const { stdout } = await sandbox.exec("ls /.sandpiper | wc -l; stat -c %h /.sandpiper/agent", { user: "root" });
    // One binary under two names: written once, then linked.
    expect(stdout).toBe("2\n2\n");
  });

  it("is recreated after its removal; at most one sandbox fails, with a clear error", async () => {
    const [volume] = await volumes();
    await fixture.engine.docker.getVolume(String(volume?.Name)).remove();
    await fixture.create().then(
      (sandbox) => sandbox.destroy(),
      (error: Error) => expect(error.message).toContain("/.sandpiper/agent"),
    );
    await using sandbox = await fixture.create();
    expect((await sandbox.exec("echo healed")).stdout).toBe("healed\n");
  });

  it("never takes a program of an image for the agent", async () => {
    const { docker } = fixture.engine;
    const container = await docker.createContainer({ Image: fixture.image, HostConfig: { NetworkMode: "none" } });
    const files = packArchive({ ".sandpiper/agent": "#!/bin/sh\nexec sleep 1000\n" });
    await container.putArchive(files as unknown as NodeJS.ReadableStream, { path: "/" });
    await container.commit({ repo: "sandpiper-test", tag: "planted" });
    await container.remove();
    for (const { Name } of await volumes()) await docker.getVolume(Name).remove();
    const provider = fixture.newProvider({ image: "sandpiper-test:planted" });
    await using sandbox = await Sandbox.create(provider);
    expect((await sandbox.exec("head -c 4 /.sandpiper/agent | tail -c 3")).stdout).toBe("ELF");
  });
});
