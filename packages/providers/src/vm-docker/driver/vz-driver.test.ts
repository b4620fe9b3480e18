import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { rejection } from "@sandpiper/core/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freshDirectory } from "../../host/testing/shared.ts";
import { VzDriver } from "./vz-driver.ts";
import { WslDriver } from "./wsl-driver.ts";

const resources = { memoryMib: 512, vcpuCount: 1, diskMib: 2 };
const { signal } = new AbortController();
const directory = freshDirectory("vz");

beforeEach(async () => {
  await mkdir(join(directory, "bin"));
  await symlink(fileURLToPath(new URL("../testing/fake-vfkit.ts", import.meta.url)), join(directory, "bin/vfkit"));
  vi.stubEnv("PATH", `${join(directory, "bin")}:${dirname(process.execPath)}:/usr/bin:/bin`);
  await writeFile(join(directory, "base.img"), "disk");
});
afterEach(() => void vi.unstubAllEnvs());

function createDriver(platform: NodeJS.Platform = "darwin"): VzDriver {
  const image = join(directory, "base.img");
  return new VzDriver({ directory: join(directory, "machines"), image, archives: [], platform });
}

describe("the machines of vfkit, with a fake vfkit", () => {
  it("have their own disk and console log, and leave nothing after destroy", async () => {
    const driver = createDriver();
    const vm = await driver.start("shop", { resources, signal });
    expect(vm.projectId).toBe("shop");
    expect((await stat(join(vm.directory, "disk.img"))).size).toBe(2 * 2 ** 20);
    expect(await readFile(vm.consoleLog ?? "", "utf8")).toBe("booted\n");
    expect(await driver.listOrphans()).toEqual([]);
    await vm.destroy();
    expect(await vm.exited).toMatchObject({ reason: "destroyed" });
    expect(await readdir(join(directory, "machines"))).toEqual([]);
  });

  it("report a crash when they end by themselves, and are removed", async () => {
    const driver = createDriver();
    const vm = await driver.start("shop", { resources, signal });
    // As a later program does with leftovers.
    await driver.remove(vm.id);
    expect(await vm.exited).toMatchObject({ reason: "crashed", message: expect.stringContaining("exit code 0") });
    await expect.poll(() => existsSync(vm.directory)).toBe(false);
  });

  it("are listed as orphans and removed after their program has ended", async () => {
    const driver = createDriver();
    await mkdir(join(directory, "machines/1"), { recursive: true });
    await writeFile(
      join(directory, "machines/1/machine.json"),
      JSON.stringify({ projectId: "shop", pid: 2 ** 22 + 1 }),
    );
    expect(await driver.listOrphans()).toEqual([{ id: "1", projectId: "shop", isRunning: false }]);
    await driver.remove("1");
    expect(await driver.listOrphans()).toEqual([]);
  });
});

describe("a driver for another system", () => {
  it("names its platform, and creates nothing", async () => {
    const vz = createDriver("linux");
    const message = "machines of driver vz are only available on macOS (darwin); this is linux";
    expect(await rejection(vz.start("shop", { resources, signal }))).toMatchObject({
      reason: "platform_not_supported",
      message,
    });
    expect(await vz.probe()).toMatchObject({ available: false, reason: message });
    const wsl = new WslDriver({ directory, image: undefined, archives: [], platform: "linux" });
    expect(await rejection(wsl.start("shop", { resources, signal }))).toMatchObject({
      message: "machines of driver wsl2 are only available on Windows (win32); this is linux",
    });
    expect(existsSync(join(directory, "machines"))).toBe(false);
  });
});
