import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../host/testing/shared.ts";
import { findQemuHost, findQemuState } from "../host.ts";
import { bootsGuest, findAccelerator } from "./accelerator.ts";

const stateDirectory = sharedDirectory("qemu");
const host = await findQemuHost(findQemuState(stateDirectory));

const probes = async () => (await readdir(tmpdir())).filter((name) => name.startsWith("sandpiper-boot-"));

describe("the accelerator probe", () => {
  it("detects that a guest boots, and leaves nothing of it", async () => {
    const kernel = await host.guestKernel();
    const before = await probes();
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 60_000 })).toBe(true);
    expect(await probes()).toEqual(before);
  }, 90_000);

  it("gives up a guest that does not answer in time", async () => {
    const kernel = await host.guestKernel();
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 50 })).toBe(false);
  });

  it("gives up a guest at once when its QEMU exits", async () => {
    const kernel = { ...(await host.guestKernel()), path: "/nonexistent" };
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 60_000 })).toBe(false);
  });

  it("remembers its result until the machine reboots", async () => {
    const asked = () => Promise.reject(new Error("it probed again"));
    expect(await findAccelerator(host.qemu, asked)).toBe(host.accelerator);
  });

  it("does not reuse the result of another QEMU", async () => {
    const found = findAccelerator({ ...host.qemu, program: process.execPath }, () =>
      Promise.reject(new Error("it probed again")),
    );
    if (existsSync("/dev/kvm")) await expect(found).rejects.toThrow("it probed again");
    else expect(await found).toBe("tcg");
  });
});
