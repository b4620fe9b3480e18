import type { Arguments } from "../command/arguments.ts";
import type { Interruption } from "../command/interruption.ts";
import { createGuest } from "../guest/create-guest.ts";
import type { Guest, GuestProcess } from "../guest/guest.ts";
import { nodeGuest } from "../guest/node-guest.ts";
import { networkFrom } from "../options/network-options.ts";
import { createOptionsFrom } from "../options/sandbox-options.ts";
import { noticeOf } from "../output/print.ts";
import { Progress, progressOf } from "../output/progress.ts";
import { PullView, pullViewOf } from "../output/pull-view.ts";
import { requireNode } from "../target/find-node.ts";
import { findSandbox } from "../target/find-sandbox.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { upload } from "../transfer/upload.ts";

/**
 * Creates the sandbox that a command line asks for, with its uploads, and destroys it after `use`. The result is
 * undefined when the user interrupts.
 */
export async function withNewGuest<Result>(
  arguments_: Arguments,
  interruption: Interruption,
  use: (guest: Guest) => Promise<Result>,
): Promise<Result | undefined> {
  const options = { ...createOptionsFrom(arguments_), network: await networkFrom(arguments_) };
  const uploads = arguments_.all("upload").map((text) => parseTransfer("upload", text, options));
  const notice = noticeOf(arguments_);
  const { signal } = interruption;
  const interrupted = untilAborted(signal);
  using progress = new Progress("creating the sandbox", progressOf(arguments_));
  using view = new PullView({ ...pullViewOf(arguments_), onBegin: () => progress[Symbol.dispose]() });
  const prepareAndUse = async (guest: Guest) => {
    view[Symbol.dispose]();
    if (guest.provider === "local") notice(await localWarning());
    for (const [port, address] of Object.entries(guest.addresses)) notice(`port ${port} is published at ${address}`);
    if (uploads.length > 0) progress.becomes("uploading");
    for (const transfer of uploads) await upload(guest, transfer, { owner: options.user, notice, progress });
    // From now on the terminal belongs to the command.
    progress[Symbol.dispose]();
    return use(guest);
  };
  try {
    await using guest = await createGuest(
      { ...options, onProgress: view.add },
      { isEmbedded: arguments_.has("embedded"), signal },
    );
    const used = prepareAndUse(guest);
    // Once the sandbox is being destroyed, its failures mean nothing.
    used.catch(() => {});
    return await Promise.race([used, interrupted]);
  } catch (error) {
    if (signal.aborted && isCancellation(error)) return undefined;
    throw error;
  }
}

/**
 * Lends a sandbox of the node to `use`, and kills the processes started through it afterwards. The result is undefined
 * when the user interrupts.
 */
export async function withExistingGuest<Result>(
  name: string,
  interruption: Interruption,
  use: (guest: Guest) => Promise<Result>,
): Promise<Result | undefined> {
  const interrupted = untilAborted(interruption.signal);
  const guest = nodeGuest(await findSandbox(await requireNode(), name));
  await using started = new AsyncDisposableStack();
  const start = async (...given: Parameters<Guest["start"]>): Promise<GuestProcess> =>
    started.use(await guest.start(...given));
  const used = use({ ...guest, start });
  used.catch(() => {});
  return await Promise.race([used, interrupted]);
}

function untilAborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined), { once: true }));
}

async function localWarning(): Promise<string> {
  const { LOCAL_WARNING } = await import("@sandpiper/node");
  return `provider local ${LOCAL_WARNING}`;
}

function isCancellation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "canceled";
}
