import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { removeLeftovers } from "../../bench/leftovers.ts";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { describeNetwork } from "./network-contract.ts";
import { useNetworkBed } from "./shared-bed.ts";
import { fullSize } from "./sizes.ts";

const homes = mkdtempSync(join(tmpdir(), "sp-"));
afterAll(async () => {
  await removeLeftovers(homes);
  rmSync(homes, { recursive: true, force: true });
}, 60_000);
const bed = await useNetworkBed({ homes, config: { defaultProvider: "qemu" } });
const images = join(bed.node.homeDir, "images");
mkdirSync(images, { recursive: true });
symlinkSync(await testRoot("python"), join(images, "python"));
const client = bed.node.client();

describeNetwork("QEMU", {
  bed,
  create: (network) =>
    client.sandboxes.create({ network, image: "python", memoryMib: 256, diskMib: 128, vcpuCount: 1 }),
  // Without KVM the processor is emulated, and many times slower.
  ...fullSize(
    { connections: 50, transferBytes: 2 * 1024 * 1024, timeoutMs: 300_000 },
    { connections: 1000, transferBytes: 64 * 1024 * 1024 },
  ),
});
