import { SandboxError } from "@sandpiper/protocol";

/** The same for what never was and for what belongs to others, so that nobody can tell these apart. */
export function noSuchSandbox(id: string): SandboxError {
  return new SandboxError("not_found", {
    reason: "no_such_sandbox",
    message: `there is no sandbox ${id}`,
    hint: "list the sandboxes to see those there are",
    details: { id },
  });
}
