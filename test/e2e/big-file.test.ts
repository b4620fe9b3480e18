import { createHash, randomBytes } from "node:crypto";
import { createSandbox } from "@sandpiper/node";
import { describe, expect, it } from "vitest";
import { sharedDirectory } from "../../packages/providers/src/host/testing/shared.ts";

const scratch = sharedDirectory("e2e");
const MIB = 1024 ** 2;
const SIZE_MIB = 1024;
const MEMORY_MIB = 256;

describe(`a file of ${SIZE_MIB} MiB`, () => {
  it(`passes both ways through a sandbox with ${MEMORY_MIB} MiB of memory`, { timeout: 240_000 }, async () => {
    await using sandbox = await createSandbox({ home: scratch, memoryMib: MEMORY_MIB, diskMib: 2 * SIZE_MIB });
    const sent = createHash("sha256");
    const { sizeBytes } = await sandbox.files.write("/home/user/big", numberedBlocks(SIZE_MIB, sent));
    expect(sizeBytes).toBe(SIZE_MIB * MIB);

    const received = createHash("sha256");
    for await (const bytes of sandbox.files.read("/home/user/big")) received.update(bytes);
    expect(received.digest("hex")).toBe(sent.digest("hex"));
    expect(sandbox.state).toBe("ready");
  });
});

/** Different blocks of 1 MiB, so that a lost, repeated or misplaced block changes the hash. */
function* numberedBlocks(count: number, hash: ReturnType<typeof createHash>): Generator<Uint8Array> {
  const pattern = randomBytes(MIB);
  for (let number = 0; number < count; number++) {
    const block = Buffer.from(pattern);
    block.writeUInt32LE(number);
    hash.update(block);
    yield block;
  }
}
