import type { Interruption } from "../command/interruption.ts";
import type { Guest, GuestProcess } from "../guest/guest.ts";
import { nodeGuest } from "../guest/node-guest.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandbox } from "../target/find-sandbox.ts";

/**
 * Lends a sandbox of the node to `use`. What it starts there is killed and forgotten afterwards, also when the user
 * interrupts; then the result is undefined.
 */
export async function withExistingGuest<Result>(
  name: string,
  interruption: Interruption,
  use: (guest: Guest) => Promise<Result>,
): Promise<Result | undefined> {
  const { signal } = interruption;
  const interrupted = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const guest = nodeGuest(await findSandbox(await requireNode(), name));
  await using started = new AsyncDisposableStack();
  const start = async (...given: Parameters<Guest["start"]>): Promise<GuestProcess> =>
    started.use(await guest.start(...given));
  const used = use({ ...guest, start });
  used.catch(() => {});
  return await Promise.race([used, interrupted]);
}
