import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { testRoot } from "../../guest/testing/test-root.ts";
import { QemuProvider } from "../provider.ts";

/** For a hook that boots the first machine of a shape, which takes long on a busy host. */
export const TEMPLATE_TIMEOUT_MS = 120_000;

/** A provider with its own state directory, which is removed at the end. */
export interface QemuFixture extends AsyncDisposable {
  readonly provider: QemuProvider;
  readonly stateDirectory: string;
  /** The configuration of every sandbox: a small root filesystem and small limits. */
  readonly config: SandboxConfigOptions;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
}

/** Fails when this host cannot run machines, because a suite that is silently skipped proves nothing. */
export async function createQemuFixture(): Promise<QemuFixture> {
  const stateDirectory = await mkdtemp(join(tmpdir(), "sandpiper-qemu-"));
  const provider = new QemuProvider({ stateDirectory });
  const status = await provider.probe();
  if (!status.available) {
    await rm(stateDirectory, { recursive: true });
    throw new Error(`QEMU's tests cannot run on this host: ${status.reason}. Remedy: ${status.hint}.`);
  }
  const config = { rootfs: await testRoot(), memoryMib: 192, diskMib: 64 };
  return {
    provider,
    stateDirectory,
    config,
    create: (options) => Sandbox.create(provider, { ...config, ...options }),
    [Symbol.asyncDispose]: async () => {
      for (const { id } of await provider.list()) await provider.remove(id);
      await rm(stateDirectory, { recursive: true });
    },
  };
}
