import type { Arguments } from "../command/arguments.ts";
import type { Interruption } from "../command/interruption.ts";
import type { Guest } from "../guest/guest.ts";
import { makeGuest } from "../guest/make-guest.ts";
import { progressOf } from "../options/quiet-option.ts";
import { createOptionsFrom } from "../options/sandbox-options.ts";
import { noticeOf } from "../output/notice.ts";
import { Progress } from "../output/progress.ts";
import { PullView, pullViewOf } from "../output/pull-view.ts";
import { parseTransfer } from "../transfer/transfer.ts";
import { upload } from "../transfer/upload.ts";

/**
 * Makes the sandbox that a command line asks for, with what it uploads, for the length of `use`. It is gone afterwards,
 * also when the user interrupts; then the result is undefined.
 */
export async function withGuest<Result>(
  arguments_: Arguments,
  interruption: Interruption,
  use: (guest: Guest) => Promise<Result>,
): Promise<Result | undefined> {
  const options = createOptionsFrom(arguments_);
  const uploads = arguments_.all("upload").map((text) => parseTransfer("upload", text, options));
  const notice = noticeOf(arguments_);
  const { signal } = interruption;
  const interrupted = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  using progress = new Progress("starting a sandbox", progressOf(arguments_));
  using view = new PullView({ ...pullViewOf(arguments_), onBegin: () => progress[Symbol.dispose]() });
  const prepareAndUse = async (guest: Guest) => {
    view[Symbol.dispose]();
    if (guest.provider === "local") notice(await localWarning());
    for (const [port, address] of Object.entries(guest.addresses)) notice(`port ${port} is reached at ${address}`);
    if (uploads.length > 0) progress.becomes("uploading");
    for (const transfer of uploads) await upload(guest, transfer, { owner: options.user, notice, progress });
    // From now on the terminal is the command's.
    progress[Symbol.dispose]();
    return use(guest);
  };
  try {
    await using guest = await makeGuest(
      { ...options, onProgress: view.add },
      { isEmbedded: arguments_.has("embedded"), signal },
    );
    const used = prepareAndUse(guest);
    // Once the sandbox is being destroyed, how this ends says nothing new.
    used.catch(() => {});
    return await Promise.race([used, interrupted]);
  } catch (error) {
    if (signal.aborted && isCancellation(error)) return undefined;
    throw error;
  }
}

async function localWarning(): Promise<string> {
  const { LOCAL_WARNING } = await import("@sandpiper/node");
  return `provider local ${LOCAL_WARNING}`;
}

function isCancellation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "canceled";
}
