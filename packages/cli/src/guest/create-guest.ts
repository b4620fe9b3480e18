import type { Sandbox } from "@sandpiper/core";
import { namingOptions } from "../options/container-options.ts";
import { findNode } from "../target/find-node.ts";
import { type Guest, type GuestOptions, isSourceCode } from "./guest.ts";

export interface CreateGuestOptions {
  /** Not on a node, even if one runs. */
  readonly isEmbedded: boolean;
  readonly signal: AbortSignal;
}

/** A new sandbox: on the node when one runs, otherwise in this process. Disposing it destroys it. */
export async function createGuest(
  options: GuestOptions,
  { isEmbedded, signal }: CreateGuestOptions,
): Promise<Guest & AsyncDisposable> {
  // A node may be on another machine, so it takes no directory of this one as a root filesystem.
  const node = isEmbedded || options.rootfs !== undefined ? undefined : await findNode();
  if (node !== undefined) {
    const { createNodeGuest } = await import("./node-guest.ts");
    return namingOptions(() => createNodeGuest(node, options, signal));
  }
  const { createSandbox } = await import("@sandpiper/node");
  const sandbox = await namingOptions(() => createSandbox({ ...options, signal }));
  return { ...embeddedGuest(sandbox), [Symbol.asyncDispose]: () => sandbox.destroy() };
}

/** A sandbox in this process. */
export function embeddedGuest(sandbox: Sandbox): Guest {
  return {
    id: sandbox.id,
    provider: sandbox.provider,
    memoryMib: sandbox.config.memoryMib,
    diskMib: sandbox.config.diskMib,
    addresses: sandbox.addresses,
    files: sandbox.files,
    start: (program, given) => {
      const options = { ...given, isRead: true };
      if (program === undefined || !isSourceCode(program)) return sandbox.start(program, options);
      return sandbox.startCode(program.language, program.code, options);
    },
    exec: (argv, options) => sandbox.exec(argv, options),
  };
}
