import { chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findLauncher } from "../host/find-agent.ts";
import { runProgram } from "../host/run-program.ts";
import { freshDirectory } from "../host/testing/shared.ts";

const directory = freshDirectory("mapped");
const launch = (image: string, idMap: string, ...argv: string[]) =>
  runProgram([
    findLauncher(),
    ...["--root", image, join(directory, "mount-point"), idMap],
    ...[String(process.pid), directory, ...argv],
  ]);

describe("a program that is launched with an image", () => {
  it("sees mapped owners of the image's files, at a mount that the host does not have", async () => {
    const image = join(directory, "image");
    await mkdir(image);
    for (const owner of [0, 7, 99]) {
      await writeFile(join(image, String(owner)), "");
      await chown(join(image, String(owner)), owner, owner);
    }
    const look = `cd ${directory}/mount-point && stat -c '%n %u:%g' 0 7 99 > ${directory}/seen`;
    expect(await launch(image, "0 70000 1\n1 80001 9\n", "/bin/sh", "-c", look)).toMatchObject({ exitCode: 0 });
    expect(await readFile(join(directory, "seen"), "utf8")).toBe("0 70000:70000\n7 80007:80007\n99 65534:65534\n");
    expect((await stat(join(image, "7"))).uid).toBe(7);
    expect(await readdir(join(directory, "mount-point"))).toEqual([]);
  });
});

describe("an image on a file system without id-mapped mounts", () => {
  it("is refused with the remedy", async () => {
    expect(await launch("/proc", "0 70000 1\n", "/bin/true")).toMatchObject({ exitCode: 1 });
    const log = await readFile(join(directory, "launch.log"), "utf8");
    expect(log).toMatch(/the file system of \/proc does not support id-mapped mounts: move it to ext4, xfs or btrfs/);
  });
});
