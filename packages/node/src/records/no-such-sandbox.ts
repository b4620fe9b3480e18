import { SandboxError } from "@sandpiper/protocol";

/** Identical for an unknown sandbox and one of another tenant, so that a caller cannot tell them apart. */
export function noSuchSandbox(id: string): SandboxError {
  return new SandboxError("no_such_sandbox", { message: `there is no sandbox ${id}`, details: { id } });
}
