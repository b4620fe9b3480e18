import { join } from "node:path";
import { Sandbox, SandboxError } from "@sandpiper/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Provision } from "../guest/provision.ts";
import { freshDirectory } from "../host/testing/shared.ts";
import { QemuProvider } from "./provider.ts";

const directory = freshDirectory("first");
beforeEach(() => {
  vi.stubEnv("XDG_CACHE_HOME", join(directory, "cache"));
  vi.stubEnv("SANDPIPER_QEMU", "");
});
afterEach(() => void vi.unstubAllEnvs());

const offline = new SandboxError("set_up_failed", { message: "the network is down" });

describe("the first use of the QEMU provider", () => {
  it("downloads nothing for a probe, a list or a removal, and says that the first sandbox will", async () => {
    const provision = vi.fn<Provision>();
    const provider = new QemuProvider({ stateDirectory: directory, provision });
    expect(await provider.probe()).toMatchObject({
      available: true,
      isFirstUse: true,
      detail: expect.stringMatching(/^not downloaded yet/),
    });
    expect(await provider.list()).toEqual([]);
    await provider.remove("00000000-0000-4000-8000-000000000000" as Parameters<typeof provider.remove>[0]);
    expect(provision).not.toHaveBeenCalled();
  });

  it("requests the missing parts for the first sandbox, and reports why they cannot be had", async () => {
    const asked: string[][] = [];
    const provision: Provision = async (parts) => {
      asked.push([...parts]);
      throw offline;
    };
    const provider = new QemuProvider({ stateDirectory: directory, provision });
    await expect(Sandbox.create(provider, {})).rejects.toMatchObject({ message: "the network is down" });
    await expect(Sandbox.create(provider, { rootfs: "/srv/own" })).rejects.toMatchObject({ reason: "set_up_failed" });
    expect(asked).toEqual([
      ["qemu", "kernel", "image"],
      ["qemu", "kernel"],
    ]);
  });
});
