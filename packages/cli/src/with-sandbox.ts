import type { Sandbox } from "@sandpiper/core";
import type { CreateSandboxOptions } from "@sandpiper/node";
import type { Interruption } from "./interruption.ts";

/**
 * Makes a sandbox for the length of `use`. It is gone afterwards, also when the user interrupts; then the result is
 * undefined.
 */
export async function withSandbox<Result>(
  options: CreateSandboxOptions,
  interruption: Interruption,
  use: (sandbox: Sandbox) => Promise<Result>,
): Promise<Result | undefined> {
  const { createSandbox } = await import("@sandpiper/node");
  const { signal } = interruption;
  const interrupted = new Promise<undefined>((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  try {
    await using sandbox = await createSandbox({ ...options, signal });
    const used = use(sandbox);
    // Once the sandbox is being destroyed, how `use` ends says nothing new.
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
