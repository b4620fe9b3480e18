import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "@sandpiper/core";
import { GvisorProvider } from "@sandpiper/providers";
import { expect, it } from "vitest";
import { appendLine, LINES_FILE, readLines } from "./numbered-lines.ts";
import { SmallDisk } from "./small-disk.ts";

const PAGE_BYTES = 4096;

/** Appends the lines in order and returns those that the sandbox acknowledged. */
async function append(sandbox: Sandbox, lines: readonly number[]): Promise<number[]> {
  const acknowledged: number[] = [];
  for (const line of lines) {
    const { exitCode } = await sandbox.exec(appendLine(line));
    if (exitCode === 0) acknowledged.push(line);
  }
  return acknowledged;
}

it("a sandbox on a full disk keeps acknowledged writes and keeps running when its checkpoint fails", async () => {
  await using disk = await SmallDisk.mount(join(tmpdir(), `sandpiper-full-disk-${process.pid}`), 64);
  const provider = new GvisorProvider({ stateDirectory: disk.path });
  await using sandbox = await Sandbox.create(provider, { diskMib: 64 });
  await sandbox.exec(`head -c ${PAGE_BYTES - 3} /dev/zero > ${LINES_FILE}`);

  await disk.fill();
  const onFullDisk = await append(sandbox, [1001, 1002]);
  const saved = join(disk.path, "saved");
  await mkdir(saved);
  await expect(sandbox.checkpoint(saved, { keepsRunning: true })).rejects.toThrow(/could not save/);
  expect(sandbox.state).toBe("ready");
  await disk.free();
  const afterwards = await append(sandbox, [1003, 1004]);

  expect(onFullDisk).toEqual([]);
  expect(afterwards).toEqual([1003, 1004]);
  const { stdout } = await sandbox.exec(`cat ${LINES_FILE}`);
  expect(stdout.slice(PAGE_BYTES - 3)).toMatch(/^\n10\n1003;/);
  expect(readLines(stdout)).toEqual(afterwards);
});
