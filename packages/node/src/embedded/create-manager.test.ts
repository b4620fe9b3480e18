import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { rejection } from "@sandpiper/protocol/testing";
import { describe, expect, it } from "vitest";
import { type CreateManagerOptions, createManager } from "./create-manager.ts";

const home = "/tmp/sandpiper-nowhere";

describe("createManager", () => {
  it("passes the manager's options to the manager", () => {
    const manager = createManager({ provider: "local", home, maxSandboxes: 7 });
    expect(manager.config.maxSandboxes).toBe(7);
    expect(() => createManager({ maxSandboxes: -1 })).toThrow("maxSandboxes");
  });

  it.each([
    ["maxSandbox", "did you mean maxSandboxes?"],
    ["vmdocker", "did you mean vmDocker?"],
    ["colour", /^options are provider, home, /],
  ])("refuses the unknown option %s", (name, hint) => {
    const options = { home, [name]: 7 } as CreateManagerOptions;
    const error = thrownBy(() => createManager(options));
    expect(error).toMatchObject({ reason: "invalid_config", message: `createManager has no option "${name}"` });
    expect(error).toMatchObject({ hint: expect.stringMatching(hint) });
  });

  it("refuses an unknown provider, and a Firecracker for another provider", () => {
    const provider = "gvizor" as "gvisor";
    expect(thrownBy(() => createManager({ provider }))).toMatchObject({
      reason: "unknown_provider",
      hint: expect.stringContaining("gvisor, qemu, firecracker"),
    });
    expect(() => createManager({ provider: "local", firecrackerPath: "/x" })).toThrow("firecrackerPath has no effect");
  });

  it("uses the Firecracker that it is given", async () => {
    const directory = await mkdtemp(join(tmpdir(), "sandpiper-manager-"));
    const firecrackerPath = join(directory, "firecracker");
    await writeFile(firecrackerPath, "#!/bin/sh\necho Firecracker v1.2.3\n");
    await chmod(firecrackerPath, 0o755);
    try {
      const create = (path: string) =>
        rejection(createManager({ provider: "firecracker", home: directory, firecrackerPath: path }).create());
      const tooOld = `the Firecracker at ${firecrackerPath} has version 1.2.3`;
      expect((await create(firecrackerPath)).message).toContain(tooOld);
      expect((await create("/nowhere/firecracker")).message).toContain(
        "/nowhere/firecracker is not a working Firecracker",
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (thrown) {
    return thrown;
  }
  throw new Error("nothing was thrown");
}
