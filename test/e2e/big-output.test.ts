import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";
import { startCli } from "./run-cli.ts";

const scratch = sharedDirectory("e2e");
const MIB = 1024 ** 2;
const BLOCK_BYTES = 64 * MIB;
const ROUNDS = 16;
/** Far below the 1 GiB of output, and above the needs of Node and its garbage. */
const MAX_MEMORY_BYTES = 256 * MIB;

describe("an output of 1 GiB", () => {
  it("arrives unchanged while the program's memory stays under 256 MiB", { timeout: 240_000 }, async () => {
    const block = randomBytes(BLOCK_BYTES);
    await writeFile(join(scratch, "block"), block);
    const expected = createHash("sha256");
    // Numbered, so that a lost, repeated or misplaced block changes the hash.
    for (let round = 1; round <= ROUNDS; round++) expected.update(`${round}\n`).update(block);

    const script = `for n in $(seq ${ROUNDS}); do echo $n; cat /tmp/block; done`;
    const upload = `${join(scratch, "block")}:/tmp/block`;
    const child = startCli(["run", "--memory", "256", "--upload", upload, "--", "sh", "-c", script], {
      env: { SANDPIPER_HOME: scratch },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const received = createHash("sha256");
    let sizeBytes = 0;
    let peakBytes = 0;
    child.stdout?.on("data", (chunk: Buffer) => {
      received.update(chunk);
      sizeBytes += chunk.length;
      if (sizeBytes % MIB < chunk.length) peakBytes = Math.max(peakBytes, peakMemoryBytes(child.pid as number));
    });
    expect(await once(child, "close")).toEqual([0, null]);
    expect(sizeBytes).toBeGreaterThan(1024 * MIB);
    expect(received.digest("hex")).toBe(expected.digest("hex"));
    expect(peakBytes).toBeGreaterThan(0);
    expect(peakBytes).toBeLessThan(MAX_MEMORY_BYTES);
  });
});

/** The peak memory of a process. */
function peakMemoryBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
