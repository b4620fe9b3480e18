import { testRoot } from "../../guest/testing/test-root.ts";
import { createProviderFixture } from "../../host/testing/provider-fixture.ts";
import { FirecrackerProvider, type FirecrackerProviderOptions } from "../provider.ts";
import { installDouble } from "./install-double.ts";

/** Uses the double, which needs no KVM: any device that can be opened works. */
export async function createDoubleFixture() {
  await using undo = new AsyncDisposableStack();
  const double = undo.use(await installDouble());
  const environment = { PATH: process.env["PATH"], SANDPIPER_FIRECRACKER: double.firecracker };
  const fixture = undo.use(await createFixture({ environment, kvmDevice: "/dev/null" }));
  const disposing = undo.move();
  return { ...fixture, [Symbol.asyncDispose]: () => disposing.disposeAsync() };
}

export const createFixture = async (options?: FirecrackerProviderOptions) =>
  createProviderFixture({
    createProvider: (given: FirecrackerProviderOptions) => new FirecrackerProvider(given),
    config: { rootfs: await testRoot(), memoryMib: 192, diskMib: 64 },
    program: new URL("host-program.ts", import.meta.url),
    ...(options && { options }),
  });
