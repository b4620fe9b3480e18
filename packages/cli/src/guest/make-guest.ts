import type { CreateSandboxOptions } from "@sandpiper/node";
import type { LayerProgress } from "../output/pull-view.ts";
import { findNode } from "../target/find-node.ts";
import type { Guest } from "./guest.ts";

/** Progress is told by the engine or by a node, which say the same in slightly different words. */
export interface GuestOptions extends Omit<CreateSandboxOptions, "onProgress"> {
  readonly onProgress?: ((progress: LayerProgress) => void) | undefined;
}

export interface MakeGuestOptions {
  /** Not on a node, even if one runs. */
  readonly isEmbedded: boolean;
  readonly signal: AbortSignal;
}

/** A new sandbox: on the node when one runs, otherwise in this very program. Disposing it destroys it. */
export async function makeGuest(
  options: GuestOptions,
  { isEmbedded, signal }: MakeGuestOptions,
): Promise<Guest & AsyncDisposable> {
  // Directories of this machine are no root filesystems of a node, whose users may be anywhere.
  const node = isEmbedded || options.rootfs !== undefined ? undefined : await findNode();
  if (node !== undefined) {
    const { createNodeGuest } = await import("./node-guest.ts");
    return createNodeGuest(node, options, signal);
  }
  const [{ createSandbox }, { embeddedGuest }] = await Promise.all([
    import("@sandpiper/node"),
    import("./embedded-guest.ts"),
  ]);
  const sandbox = await createSandbox({ ...options, signal });
  return { ...embeddedGuest(sandbox), [Symbol.asyncDispose]: () => sandbox.destroy() };
}
