import { testRoot } from "../../guest/testing/test-root.ts";
import { createProviderFixture } from "../../host/testing/provider-fixture.ts";
import { QemuProvider, type QemuProviderOptions } from "../provider.ts";

export const createQemuFixture = async () =>
  createProviderFixture({
    createProvider: (options: QemuProviderOptions) => new QemuProvider(options),
    config: { rootfs: await testRoot(), memoryMib: 192, diskMib: 64 },
    program: new URL("host-program.ts", import.meta.url),
  });
