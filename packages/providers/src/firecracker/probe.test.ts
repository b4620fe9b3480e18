import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freshDirectory, putScript } from "../host/testing/shared.ts";
import { FirecrackerProvider } from "./provider.ts";
import { type InstalledDouble, installDouble } from "./testing/install-double.ts";

let double: InstalledDouble;
const stateDirectory = freshDirectory("probe");
beforeEach(async () => {
  double = await installDouble();
});
afterEach(() => double[Symbol.asyncDispose]());

const provider = (kvmDevice: string, SANDPIPER_FIRECRACKER = double.firecracker) =>
  new FirecrackerProvider({
    stateDirectory,
    kvmDevice,
    environment: { PATH: process.env["PATH"], SANDPIPER_FIRECRACKER },
  });

describe("the Firecracker probe", () => {
  it("reports what is missing and the remedy, as does a creation", async () => {
    const lacking = provider("/dev/null", join(stateDirectory, "nothing"));
    expect(await lacking.probe()).toMatchObject({
      available: false,
      reason: expect.stringContaining("is not a working Firecracker"),
      hint: expect.stringContaining("SANDPIPER_FIRECRACKER"),
    });
    await expect(Sandbox.create(lacking, {})).rejects.toMatchObject({
      code: "failed_precondition",
      reason: "firecracker_missing",
    });
  });

  it("reports missing or forbidden KVM with the remedy, and names a provider that needs none", async () => {
    const lacking = provider(join(stateDirectory, "no-kvm"));
    expect(await lacking.probe()).toMatchObject({
      available: false,
      reason: expect.stringContaining("no-kvm"),
      hint: expect.stringMatching(/nested virtualization.*qemu/),
    });
    await expect(Sandbox.create(lacking, {})).rejects.toMatchObject({ reason: "kvm_missing" });
    await expect(Sandbox.create(provider(stateDirectory), {})).rejects.toMatchObject({
      reason: "kvm_not_permitted",
      hint: expect.stringContaining("root"),
    });
  });

  it("tries KVM once, reports that it runs no guest, and leaves nothing of the attempt", async () => {
    // A Firecracker that fails as soon as it starts.
    const script = '[ "$1" = --version ] && echo "Firecracker v1.10.1" && exit\necho no vcpus >&2; exit 1';
    await putScript(double.firecracker, script);
    const hostile = provider("/dev/null");
    const refused = {
      available: false,
      reason: expect.stringMatching(/could not run a guest: .*no vcpus/s),
      hint: expect.stringContaining("qemu"),
    };
    expect(await hostile.probe()).toMatchObject(refused);
    const directory = join(stateDirectory, "firecracker");
    expect(await readdir(join(directory, "transient"))).toEqual([]);
    const [verdict = ""] = await readdir(join(directory, "kvm"));
    expect((await hostile.probe()).available).toBe(false);
    // The result is kept until it is deleted.
    await writeFile(join(directory, "kvm", verdict), "");
    expect(await hostile.probe()).toMatchObject({ available: true, detail: expect.stringContaining("1.10.1") });
  });
});
