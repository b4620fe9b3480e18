import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Engine } from "./engine.ts";
import { type Dockerd, startDockerd } from "./testing/dockerd.ts";

let dockerd: Dockerd;
beforeAll(async () => {
  dockerd = await startDockerd();
}, 300_000);
afterAll(async () => {
  await dockerd?.[Symbol.asyncDispose]();
});

describe("an engine", () => {
  it("says what it is", async () => {
    using engine = await Engine.connect({ url: new URL(dockerd.url), origin: "test", tls: undefined });
    expect(engine.info).toEqual({
      serverVersion: expect.stringMatching(/^\d+\.\d+/),
      apiVersion: expect.stringMatching(/^1\.\d+$/),
      isPodman: false,
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      os: "linux",
      runtimes: expect.arrayContaining(["runc"]),
      defaultRuntime: "runc",
      isLiveRestore: false,
      securityOptions: expect.arrayContaining([expect.stringContaining("seccomp")]),
      cgroupVersion: expect.stringMatching(/^[12]$/),
    });
  });

  it("says what was tried on which id", async () => {
    using engine = await Engine.connect({ url: new URL(dockerd.url), origin: "test", tls: undefined });
    await expect(
      engine.call("inspect container nope", (docker) => docker.getContainer("nope").inspect()),
    ).rejects.toMatchObject({
      code: "not_found",
      message: "could not inspect container nope: No such container: nope",
    });
  });
});
