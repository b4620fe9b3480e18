import { chmod, chown, mkdir, readdir, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PullProgress } from "@sandpiper/core";
import { beforeEach, describe, expect, it } from "vitest";
import { findProgram } from "../host/find-program.ts";
import { runProgram } from "../host/run-program.ts";
import { freshDirectory } from "../host/testing/shared.ts";
import { guestImage } from "./guest-image.ts";
import type { GuestImage } from "./image-build.ts";

const directory = freshDirectory("guest-image");
const root = join(directory, "root");

beforeEach(async () => {
  await mkdir(join(root, "etc"), { recursive: true });
  await mkdir(join(root, "home/user"), { recursive: true });
  await chown(join(root, "home/user"), 1000, 1000);
  await writeFile(join(root, "etc/hostname"), "one\n");
  await symlink("hostname", join(root, "etc/link"));
});

function make(rootfs = root, onProgress?: (progress: PullProgress) => void): Promise<GuestImage> {
  const [imagesDirectory, stateDirectory] = [join(directory, "images"), join(directory, "state")];
  return guestImage(rootfs, { imagesDirectory, stateDirectory, onProgress });
}

async function look({ path }: GuestImage, command: string): Promise<string> {
  const debugfs = findProgram("debugfs", "/usr/sbin:/sbin") ?? "debugfs";
  return (await runProgram([debugfs, "-R", command, path])).stdout;
}

describe("the image of a directory", () => {
  it("has its files with their owners and modes, and nothing else", async () => {
    await writeFile(join(root, "etc/tool"), "x");
    await chmod(join(root, "etc/tool"), 0o4755);
    const image = await make();
    expect(await look(image, "cat etc/hostname")).toBe("one\n");
    expect(await look(image, "stat etc/link")).toContain('Fast link dest: "hostname"');
    expect(await look(image, "stat etc/tool")).toMatch(/Mode: +04755/);
    expect(await look(image, "stat home/user")).toMatch(/User: +1000 +Group: +1000/);
    const names = (await look(image, "ls -p")).matchAll(/^\/\d+\/\d+\/\d+\/\d+\/([^/]+)\//gm);
    expect([...names].map((match) => match[1]).sort()).toEqual([".", "..", "etc", "home"]);
  });

  it("is built once, and again when a file has changed", async () => {
    const first = await make();
    expect(await make()).toEqual(first);
    expect(await readdir(join(directory, "images"))).toHaveLength(1);
    await writeFile(join(root, "etc/hostname"), "two\n");
    const second = await make();
    expect(second.sha).not.toBe(first.sha);
    expect(await look(second, "cat etc/hostname")).toBe("two\n");
  });

  it("is sparse", async () => {
    await writeFile(join(root, "zeros"), "");
    await truncate(join(root, "zeros"), 64 * 2 ** 20);
    const { path } = await make();
    expect((await stat(path)).blocks * 512).toBeLessThan(4 * 2 ** 20);
  });

  it("reports the progress of its build", async () => {
    const reported: PullProgress[] = [];
    await make(root, (progress) => reported.push(progress));
    expect(reported[0]).toMatchObject({ image: root, status: "building" });
    expect(reported.at(-1)).toMatchObject({ status: "complete" });
    expect(reported.at(-1)?.doneBytes).toBe(reported.at(-1)?.totalBytes);
  });

  it("leaves nothing behind when its build fails", async () => {
    await writeFile(join(root, "huge"), "");
    // Each is as large as a file may be here, so that one image cannot hold both.
    await truncate(join(root, "huge"), 12 * 2 ** 40);
    await writeFile(join(root, "huger"), "");
    await truncate(join(root, "huger"), 12 * 2 ** 40);
    await expect(make()).rejects.toThrow();
    expect(await readdir(join(directory, "images"))).toEqual([]);
  });
});

describe("an image file", () => {
  it("is used as it is", async () => {
    const { path, sha } = await make();
    expect(await make(path)).toEqual({ path, sha });
  });

  it("is refused without a filesystem", async () => {
    const path = join(directory, "text");
    await writeFile(path, "x".repeat(4096));
    await expect(make(path)).rejects.toMatchObject({ reason: "rootfs_not_a_filesystem" });
    await writeFile(path, "");
    await expect(make(path)).rejects.toMatchObject({ reason: "rootfs_not_a_filesystem" });
  });
});

it.each([
  ["relative_rootfs", () => "images/root"],
  ["no_such_rootfs", () => join(directory, "nowhere")],
  ["rootfs_not_a_directory", () => "/dev/null"],
  ["rootfs_overlaps_state", () => directory],
])("refuses %s as a root filesystem", async (reason, rootfs) => {
  await expect(make(rootfs())).rejects.toMatchObject({ code: "invalid_argument", reason });
});
