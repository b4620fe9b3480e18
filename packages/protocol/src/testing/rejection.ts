import { SandboxError } from "../errors/sandbox-error.ts";

/** Resolves with the error of a promise; throws if the promise is fulfilled. */
export async function rejection(promise: Promise<unknown>): Promise<SandboxError> {
  try {
    await promise;
  } catch (thrown) {
    return SandboxError.from(thrown);
  }
  throw new Error("expected a rejection, but the promise was fulfilled");
}
