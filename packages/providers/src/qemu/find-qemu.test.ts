import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findQemu, type Qemu } from "./find-qemu.ts";

const PROGRAM = "qemu-system-x86_64";
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "sandpiper-find-qemu-"));
});
afterEach(() => rm(directory, { recursive: true }));

/** A program that says of which version it is. */
async function put(path: string, version: string): Promise<string> {
  const program = join(directory, path, PROGRAM);
  await mkdir(dirname(program), { recursive: true });
  await writeFile(program, `#!/bin/sh\necho "QEMU emulator version ${version} (of a test)"\n`);
  await chmod(program, 0o755);
  return program;
}

function find(environment: Record<string, string> = {}, takesTuned = true): ReturnType<typeof findQemu> {
  return findQemu({ environment: { XDG_CACHE_HOME: directory, ...environment }, takesTuned });
}

it("the one that is named comes first, then the one built for this machine, then the machine's own, then the unpacked one", async () => {
  expect(await find()).toMatchObject({ hint: expect.stringContaining("npm run setup qemu") });
  const unpacked = await put("sandpiper/qemu-system-x86/usr/bin", "7.2.1");
  expect(await find()).toMatchObject({ program: unpacked, version: "7.2.1", isTuned: false });
  const installed = await put("bin", "7.2.2");
  const PATH = dirname(installed);
  expect(await find({ PATH })).toMatchObject({ program: installed, version: "7.2.2", isTuned: false });
  const tuned = await put("sandpiper/tuned-qemu/0123", "7.2.3");
  expect(await find({ PATH })).toMatchObject({ program: tuned, version: "7.2.3", isTuned: true });
  expect(await find({ PATH }, false)).toMatchObject({ program: installed, isTuned: false });
  const SANDPIPER_QEMU = await put("own", "7.2.4");
  expect(await find({ PATH, SANDPIPER_QEMU })).toMatchObject({ program: SANDPIPER_QEMU, isTuned: false });
});

it("one that was built has its firmware beside it", async () => {
  const tuned = await put("sandpiper/tuned-qemu/0123", "7.2.3");
  expect(((await find()) as Qemu).args).toEqual(["-L", dirname(tuned)]);
});

it("one that does not say its version is none", async () => {
  const SANDPIPER_QEMU = await put("own", "of its own");
  expect(await find({ SANDPIPER_QEMU })).toMatchObject({ reason: expect.stringContaining(SANDPIPER_QEMU) });
});
