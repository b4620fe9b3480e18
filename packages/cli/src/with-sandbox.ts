import type { Sandbox } from "@sandpiper/core";
import type { Arguments } from "./arguments.ts";
import type { Interruption } from "./interruption.ts";
import { noticeOf } from "./notice.ts";
import { createOptionsFrom } from "./sandbox-options.ts";
import { parseTransfer } from "./transfer/transfer.ts";
import { upload } from "./transfer/upload.ts";

/**
 * Makes the sandbox that a command line asks for, with what it uploads, for the length of `use`. It is gone afterwards,
 * also when the user interrupts; then the result is undefined.
 */
export async function withSandbox<Result>(
  arguments_: Arguments,
  interruption: Interruption,
  use: (sandbox: Sandbox) => Promise<Result>,
): Promise<Result | undefined> {
  const options = createOptionsFrom(arguments_);
  const uploads = arguments_.all("upload").map((text) => parseTransfer("upload", text, options));
  const notice = noticeOf(arguments_);
  const { createSandbox, LOCAL_WARNING } = await import("@sandpiper/node");
  const { signal } = interruption;
  const interrupted = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const prepareAndUse = async (sandbox: Sandbox) => {
    if (sandbox.capabilities.isolation === "none") notice(`provider ${sandbox.provider} ${LOCAL_WARNING}`);
    for (const transfer of uploads) await upload(sandbox, transfer, { owner: options.user, notice });
    return use(sandbox);
  };
  try {
    await using sandbox = await createSandbox({ ...options, signal });
    const used = prepareAndUse(sandbox);
    // Once the sandbox is being destroyed, how this ends says nothing new.
    used.catch(() => {});
    return await Promise.race([used, interrupted]);
  } catch (error) {
    if (signal.aborted && isCancellation(error)) return undefined;
    throw error;
  }
}

function isCancellation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "canceled";
}
