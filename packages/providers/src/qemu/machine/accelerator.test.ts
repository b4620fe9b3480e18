import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findQemuHost, findQemuState, type QemuHost } from "../host.ts";
import { bootsGuest, findAccelerator } from "./accelerator.ts";

let stateDirectory: string;
let host: QemuHost;
beforeAll(async () => {
  stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-qemu-"));
  host = await findQemuHost(findQemuState({ stateDirectory }));
});
afterAll(() => rm(stateDirectory, { recursive: true }));

const probes = async () => (await readdir(tmpdir())).filter((name) => name.startsWith("sandpiper-boot-"));

describe("the look for what guests run with", () => {
  it("finds that a guest boots when it does, and leaves nothing of it", async () => {
    const kernel = await host.guestKernel();
    const before = await probes();
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 60_000 })).toBe(true);
    expect(await probes()).toEqual(before);
  });

  it("gives a guest up that does not answer in time", async () => {
    const kernel = await host.guestKernel();
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 50 })).toBe(false);
  });

  it("gives a guest up at once whose QEMU ends", async () => {
    const kernel = { ...(await host.guestKernel()), path: "/nonexistent" };
    expect(await bootsGuest(host.qemu, kernel, { accelerator: "tcg", timeoutMs: 60_000 })).toBe(false);
  });

  it("remembers what it found for as long as this machine runs", async () => {
    const asked = () => Promise.reject(new Error("it looked again"));
    expect(await findAccelerator(host.qemu, asked)).toBe(host.accelerator);
  });

  it("takes nothing that it found with one QEMU for true of another", async () => {
    const found = findAccelerator({ ...host.qemu, program: process.execPath }, () =>
      Promise.reject(new Error("it looked again")),
    );
    if (existsSync("/dev/kvm")) await expect(found).rejects.toThrow("it looked again");
    else expect(await found).toBe("tcg");
  });
});
