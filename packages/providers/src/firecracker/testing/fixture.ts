import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox, type SandboxConfigOptions } from "@sandpiper/core";
import { testRoot } from "../../guest/testing/test-root.ts";
import { FirecrackerProvider, type FirecrackerProviderOptions } from "../provider.ts";
import { installDouble } from "./install-double.ts";

/** A provider with its own state directory, which is removed at the end. */
export interface FirecrackerFixture extends AsyncDisposable {
  readonly provider: FirecrackerProvider;
  /** The options of providers that share its state and its programs. */
  readonly options: FirecrackerProviderOptions & { readonly stateDirectory: string };
  /** The configuration of every sandbox: a small root filesystem and small limits. */
  readonly config: SandboxConfigOptions;
  create(options?: SandboxConfigOptions): Promise<Sandbox>;
}

/** Uses the double, which needs no KVM: any device that can be opened works. */
export async function createDoubleFixture(): Promise<FirecrackerFixture> {
  const double = await installDouble();
  const environment = { PATH: process.env["PATH"], SANDPIPER_FIRECRACKER: double.firecracker };
  const fixture = await createFixture({ environment, kvmDevice: "/dev/null" }).catch(async (error: unknown) => {
    await double[Symbol.asyncDispose]();
    throw error;
  });
  return {
    ...fixture,
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]();
      await double[Symbol.asyncDispose]();
    },
  };
}

/** Fails when this host cannot run machines, because a suite that is silently skipped proves nothing. */
export async function createFixture(given: FirecrackerProviderOptions = {}): Promise<FirecrackerFixture> {
  // A short path, because the double has sockets deep inside.
  const stateDirectory = await mkdtemp(join(tmpdir(), "fc-"));
  const options = { ...given, stateDirectory };
  const provider = new FirecrackerProvider(options);
  const status = await provider.probe();
  if (!status.available) {
    await rm(stateDirectory, { recursive: true });
    throw new Error(`Firecracker's tests cannot run on this host: ${status.reason}. Remedy: ${status.hint}.`);
  }
  const config = { rootfs: await testRoot(), memoryMib: 192, diskMib: 64 };
  return {
    provider,
    options,
    config,
    create: (extra) => Sandbox.create(provider, { ...config, ...extra }),
    [Symbol.asyncDispose]: async () => {
      for (const { id } of await provider.list()) await provider.remove(id);
      await rm(stateDirectory, { recursive: true });
    },
  };
}
