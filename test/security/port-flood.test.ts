import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/core";
import { describe, expect, it } from "vitest";
import { machineProcesses } from "../../packages/providers/src/host/testing/machine-traces.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { createQemuFixture } from "../../packages/providers/src/qemu/testing/fixture.ts";

const fixture = await shared(createQemuFixture());

/**
 * The guest's kernel lets only one program open the agent's port, but root can duplicate the agent's own descriptor. Once
 * /tmp/go exists, writes blocks of the same line to it.
 */
const FLOOD = `
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static char block[65536];
int main(int count, char **words) {
  int port = -1;
  long agent = syscall(SYS_pidfd_open, 1, 0);
  for (int fd = 0; fd < 64 && port < 0; fd++) {
    char path[32], target[64] = "";
    snprintf(path, sizeof path, "/proc/1/fd/%d", fd);
    if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "/dev/v")) port = syscall(SYS_pidfd_getfd, agent, fd, 0);
  }
  puts(port < 0 ? "no port" : "ready");
  fflush(stdout);
  while (access("/tmp/go", F_OK)) usleep(10000);
  size_t size = 0, length = strlen(words[1]);
  for (; size + length < sizeof block; block[size++] = '\\n') { memcpy(block + size, words[1], length); size += length; }
  for (long left = atol(words[2]); left > 0; left--) for (size_t at = 0; at < size;) {
    ssize_t written = write(port, block + at, size - at);
    if (written < 0) usleep(1000); else at += written;
  }
}`;

const program = compile(FLOOD);

function compile(source: string): Buffer {
  const directory = mkdtempSync(join(tmpdir(), "sp-flood-"));
  try {
    const [file, made] = [join(directory, "flood.c"), join(directory, "flood")];
    writeFileSync(file, source);
    execFileSync("gcc", ["-O1", "-static", "-o", made, file]);
    return readFileSync(made);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function prepareFlood(sandbox: Sandbox, line: string, blocks: number): Promise<void> {
  await sandbox.writeFile("/tmp/flood", program, { mode: 0o755 });
  const flood = await sandbox.start(["/tmp/flood", line, `${blocks}`], { user: "root" });
  for await (const { bytes } of flood.output) {
    expect(Buffer.from(bytes).toString()).toBe("ready\n");
    break;
  }
}

/** The first machine of a provider boots. */
describe("a virtual machine that floods the port of its agent", { timeout: 120_000 }, () => {
  it("loses its channel after repeated nonsense; the next command opens another", async () => {
    await using noisy = await fixture.create();
    await prepareFlood(noisy, "x", 4);
    await expect(noisy.exec("touch /tmp/go; sleep 60")).rejects.toMatchObject({ reason: "agent_malformed" });
    await expect.poll(() => noisy.exec("echo back").then(({ stdout }) => stdout, String)).toBe("back\n");
  });

  it("does not keep this program from serving its neighbours", async () => {
    await using noisy = await fixture.create();
    await using neighbour = await fixture.create();
    const [machine] = await machineProcesses(noisy.id);
    const sentBytes = () => Number(/^wchar: (\d+)$/m.exec(readFileSync(`/proc/${machine}/io`, "utf8"))?.[1]);
    await prepareFlood(noisy, "", 100_000);
    const before = sentBytes();
    // The protocol allows blank lines.
    const flooded = noisy.exec("touch /tmp/go; sleep 60").catch(() => {});
    await expect.poll(sentBytes).toBeGreaterThan(before + 2 ** 20);
    for (let count = 0; count < 20; count++) expect((await neighbour.exec("echo here")).stdout).toBe("here\n");
    await noisy.destroy();
    await flooded;
  });
});
