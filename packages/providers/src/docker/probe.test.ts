import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { probeDocker } from "./probe.ts";
import { type Dockerd, startDockerd } from "./testing/dockerd.ts";

let dockerd: Dockerd;
beforeAll(async () => {
  dockerd = await startDockerd({ liveRestore: true, runtimes: { runsc: "/bin/true" } });
}, 300_000);
afterAll(async () => {
  await dockerd?.[Symbol.asyncDispose]();
});

describe("probing for an engine", () => {
  it("reports the engine that answers", async () => {
    expect(await probeDocker({ engineUrl: dockerd.url })).toEqual({
      available: true,
      detail: expect.stringMatching(/^Docker [\d.]\S*, API 1\.\d+, runsc, cgroup v[12], live restore on$/),
    });
  });

  it("reports why no engine answers, with a hint", async () => {
    expect(await probeDocker({ engineUrl: "unix:///no/such/engine.sock" })).toEqual({
      available: false,
      reason: expect.stringContaining("unix:///no/such/engine.sock"),
      hint: expect.stringContaining("systemctl start docker"),
    });
  });
});
