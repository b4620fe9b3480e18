import { SandboxError } from "../sandbox-error.ts";

/** Resolves with the error of a promise, and fails if the promise resolves. */
export async function rejection(promise: Promise<unknown>): Promise<SandboxError> {
  try {
    await promise;
  } catch (thrown) {
    return SandboxError.from(thrown);
  }
  throw new Error("the promise was expected to reject");
}
