import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { testRoot } from "../../packages/providers/src/guest/testing/test-root.ts";
import { shared } from "../../packages/providers/src/host/testing/shared.ts";
import { NodeProcess } from "../node/node-process.ts";
import { MACHINE, QemuHome } from "../node/qemu-home.ts";
import { describePreviews } from "./preview-contract.ts";

const home = await shared(QemuHome.make());
mkdirSync(join(home.path, "images"), { recursive: true });
symlinkSync(await testRoot("python"), join(home.path, "images", "python"));
const node = await shared(NodeProcess.start(home.config()));

describePreviews("QEMU", {
  node,
  create: () => node.client.sandboxes.create({ ...MACHINE, image: "python", memoryMib: 256, diskMib: 128 }),
  // Without KVM the processor is emulated, and many times slower.
  timeoutMs: 300_000,
});
