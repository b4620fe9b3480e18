import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { freshDirectory, putScript } from "../host/testing/shared.ts";
import { findQemu } from "./find-qemu.ts";

const PROGRAM = "qemu-system-x86_64";
const directory = freshDirectory("find-qemu");

/** A program that prints a version. */
function put(path: string, version: string): Promise<string> {
  return putScript(join(directory, path, PROGRAM), `echo "QEMU emulator version ${version} (of a test)"`);
}

function find(environment: Record<string, string> = {}): ReturnType<typeof findQemu> {
  return findQemu({ XDG_CACHE_HOME: directory, ...environment });
}

it("prefers SANDPIPER_QEMU to a QEMU on the PATH, and that to the unpacked package", async () => {
  await expect(find()).rejects.toMatchObject({ hint: expect.stringContaining("npm run setup qemu") });
  const unpacked = await put("sandpiper/qemu-system-x86/usr/bin", "7.2.1");
  expect(await find()).toMatchObject({ program: unpacked, version: "7.2.1" });
  const installed = await put("bin", "7.2.2");
  const PATH = dirname(installed);
  expect(await find({ PATH })).toMatchObject({ program: installed, version: "7.2.2" });
  const SANDPIPER_QEMU = await put("own", "7.2.4");
  expect(await find({ PATH, SANDPIPER_QEMU })).toMatchObject({ program: SANDPIPER_QEMU });
});

it("rejects a QEMU that does not print its version", async () => {
  const SANDPIPER_QEMU = await put("own", "configured");
  await expect(find({ SANDPIPER_QEMU })).rejects.toThrow(SANDPIPER_QEMU);
});
