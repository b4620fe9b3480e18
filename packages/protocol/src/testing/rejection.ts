import { SandboxError } from "../errors/sandbox-error.ts";

/** What a promise rejects with; a promise that resolves is itself the failure. */
export async function rejection(promise: Promise<unknown>): Promise<SandboxError> {
  try {
    await promise;
  } catch (thrown) {
    return SandboxError.from(thrown);
  }
  throw new Error("this was expected to be refused, and was not");
}
