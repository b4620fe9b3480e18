import { describe, expect, it } from "vitest";
import { shared } from "../host/testing/shared.ts";
import { probeDocker } from "./probe.ts";
import { startDockerd } from "./testing/dockerd.ts";

const dockerd = await shared(startDockerd({ liveRestore: true, runtimes: { runsc: "/bin/true" } }));

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
