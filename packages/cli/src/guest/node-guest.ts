import { SandboxError } from "@sandpiper/core";
import type { Client, Sandbox } from "@sandpiper/sdk";
import type { Guest } from "./guest.ts";
import type { GuestOptions } from "./make-guest.ts";

/** A program that was killed destroys nothing; a minute after its connection is gone the node does. */
const ABANDONED_AFTER_MS = 60_000;

/** A sandbox on a node. */
export function nodeGuest(sandbox: Sandbox): Guest {
  const { files } = sandbox;
  return {
    id: sandbox.id,
    provider: sandbox.info.provider,
    memoryMib: sandbox.info.memoryMib,
    diskMib: sandbox.info.diskMib,
    addresses: sandbox.info.addresses,
    files: {
      stat: (path) => files.stat(path),
      list: async function* (path, options) {
        yield* await files.list(path, options);
      },
      mkdir: (path, options) => files.mkdir(path, options),
      chmod: (path, mode) => files.chmod(path, mode),
      read: async function* (path) {
        yield* await files.readStream(path);
      },
      write: (path, content, options) => files.write(path, content, options),
    },
    start: (argv, options) => sandbox.start(argv, options),
    exec: (argv, options) => sandbox.exec(argv, options),
  };
}

/** Makes one for the length of a command. */
export async function createNodeGuest(
  client: Client,
  options: GuestOptions,
  signal: AbortSignal,
): Promise<Guest & AsyncDisposable> {
  const { provider, memoryMib, vcpuCount, diskMib, maxProcesses, cwd, user, onProgress } = options;
  const { image, ...container } = options.container ?? {};
  if (provider === "docker" && image !== undefined) {
    // Here, because this can be stopped half-way.
    await client.images.pull(image, { provider, policy: container.imagePullPolicy, signal, onProgress });
  }
  if (provider === "qemu") await client.images.pull("host", { provider, signal, onProgress });
  // Not stopped half-way, since then nobody would know which sandbox to destroy.
  const sandbox = await client.sandboxes.create({
    provider,
    memoryMib,
    vcpuCount,
    diskMib,
    maxProcesses,
    cwd,
    user,
    image,
    container: Object.keys(container).length === 0 ? undefined : container,
    idleTimeoutMs: ABANDONED_AFTER_MS,
    idleExcept: ["process", "output"],
  });
  if (!signal.aborted) return { ...nodeGuest(sandbox), [Symbol.asyncDispose]: () => sandbox.destroy() };
  await sandbox.destroy();
  throw new SandboxError("canceled", { reason: "interrupted", message: "the sandbox was not wanted any more" });
}
