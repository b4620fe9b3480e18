import { copyFile, mkdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freshDirectory } from "../host/testing/shared.ts";
import { findFirecracker } from "./find-firecracker.ts";
import { type InstalledDouble, installDouble } from "./testing/install-double.ts";

let double: InstalledDouble;
const empty = freshDirectory("find");
beforeEach(async () => {
  double = await installDouble();
});
afterEach(() => double[Symbol.asyncDispose]());

describe("findFirecracker", () => {
  it("finds the named Firecracker, one on the PATH and one in the cache, each with the jailer beside it", async () => {
    const named = { SANDPIPER_FIRECRACKER: double.firecracker, PATH: empty, XDG_CACHE_HOME: empty };
    const found = { program: double.firecracker, jailer: double.jailer, version: "1.16.1" };
    expect(await findFirecracker(named)).toEqual(found);
    expect(await findFirecracker({ PATH: dirname(double.firecracker), XDG_CACHE_HOME: empty })).toEqual(found);
    const cache = join(empty, "sandpiper/firecracker");
    await mkdir(cache, { recursive: true });
    for (const name of ["firecracker", "jailer"]) {
      await copyFile(join(dirname(double.firecracker), name), join(cache, name));
    }
    expect(await findFirecracker({ PATH: empty, XDG_CACHE_HOME: empty })).toMatchObject({
      program: join(cache, "firecracker"),
      jailer: join(cache, "jailer"),
    });
  });

  it("finds the jailer of a release, which has the version in its name, and a named jailer", async () => {
    const program = join(dirname(double.firecracker), "firecracker-v1.10.1-x86_64");
    const jailer = join(dirname(double.firecracker), "jailer-v1.10.1-x86_64");
    await rename(double.firecracker, program);
    await rename(double.jailer, jailer);
    const environment = { SANDPIPER_FIRECRACKER: program, PATH: empty, XDG_CACHE_HOME: empty };
    expect(await findFirecracker(environment)).toMatchObject({ program, jailer });
    await rename(jailer, double.jailer);
    const named = { ...environment, SANDPIPER_JAILER: double.jailer };
    expect(await findFirecracker(named)).toMatchObject({ jailer: double.jailer });
  });

  it("reports what is missing and where to get it", async () => {
    const nothing = { PATH: empty, XDG_CACHE_HOME: empty };
    await expect(findFirecracker(nothing)).rejects.toMatchObject({
      reason: "firecracker_missing",
      hint: expect.stringContaining("releases"),
    });
    const named = (SANDPIPER_FIRECRACKER: string) => findFirecracker({ ...nothing, SANDPIPER_FIRECRACKER });
    await expect(named("/etc/hostname")).rejects.toThrow("/etc/hostname");
    await rm(double.jailer);
    await expect(named(double.firecracker)).rejects.toMatchObject({
      reason: "jailer_missing",
      hint: expect.stringContaining("SANDPIPER_JAILER"),
    });
  });

  it("refuses a Firecracker that is too old to describe its devices to Debian's kernel", async () => {
    await using old = await installDouble({ version: "1.7.0" });
    const environment = { SANDPIPER_FIRECRACKER: old.firecracker, PATH: empty };
    await expect(findFirecracker(environment)).rejects.toMatchObject({
      reason: "firecracker_too_old",
      message: expect.stringContaining("1.7.0"),
    });
  });
});
