import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const MIB = 1024 ** 2;
const PT_INTERP = 3;
const agent = join(import.meta.dirname, "../../agent/target/release/sandpiper-agent");

describe("the agent's binary", () => {
  it("takes at most 2.5 MiB", () => {
    expect(statSync(agent).size).toBeLessThanOrEqual(2.5 * MIB);
  });

  it("is statically linked, so that it starts in any image", () => {
    expect(segmentTypes(readFileSync(agent))).not.toContain(PT_INTERP);
  });

  it("keeps at most 2 MiB resident when it is idle", async () => {
    const child = spawn(agent, ["--channel", "stdio", "--exit-on-eof"], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
      const [answer] = await once(child.stdout, "data");
      expect(JSON.parse(String(answer))).toEqual({ jsonrpc: "2.0", id: 1, result: { pong: true } });
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      const residentKib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
      expect(residentKib * 1024).toBeLessThanOrEqual(2 * MIB);
    } finally {
      child.kill("SIGKILL");
    }
  });
});

/** The types of an ELF file's program headers. */
function segmentTypes(elf: Buffer): number[] {
  expect(elf.subarray(0, 6)).toEqual(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1]));
  const [offset, size, count] = [Number(elf.readBigUInt64LE(32)), elf.readUInt16LE(54), elf.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => elf.readUInt32LE(offset + index * size));
}
