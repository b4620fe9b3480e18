import { SandboxError } from "@sandpiper/protocol/error";
import type { Client, Sandbox } from "@sandpiper/sdk";
import { splitContainer } from "../options/container-options.ts";
import { type Guest, type GuestOptions, isSourceCode } from "./guest.ts";

/** A killed program cannot destroy its sandbox; the node does, a minute after the connection is gone. */
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
    start: (program, options) => {
      if (program === undefined) return sandbox.shell(options);
      return isSourceCode(program)
        ? sandbox.startCode(program.code, { ...options, language: program.language })
        : sandbox.start(program, options);
    },
    exec: (argv, options) => sandbox.exec(argv, options),
  };
}

/** Creates a sandbox for the length of a command. */
export async function createNodeGuest(
  client: Client,
  options: GuestOptions,
  signal: AbortSignal,
): Promise<Guest & AsyncDisposable> {
  const { provider, memoryMib, vcpuCount, diskMib, maxProcesses, cwd, user, network, onProgress } = options;
  const { image, container } = splitContainer(options.container);
  if (provider === "docker" && image !== undefined) {
    // A pull, unlike a create, can be canceled.
    await client.images.pull(image, { provider, policy: container?.imagePullPolicy, signal, onProgress });
  }
  if (provider === "qemu") await client.images.pull("host", { provider, signal, onProgress });
  // Never canceled: the ID of the sandbox to destroy would be lost.
  const sandbox = await client.sandboxes.create({
    provider,
    memoryMib,
    vcpuCount,
    diskMib,
    maxProcesses,
    cwd,
    user,
    image,
    container,
    network,
    idleTimeoutMs: ABANDONED_AFTER_MS,
    idleExcept: ["process", "output"],
  });
  if (!signal.aborted) return { ...nodeGuest(sandbox), [Symbol.asyncDispose]: () => sandbox.destroy() };
  await sandbox.destroy();
  throw new SandboxError("interrupted", { message: "creating the sandbox was interrupted" });
}
