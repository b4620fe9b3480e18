import { SandboxError } from "@sandpiper/protocol";

/** The error for an address that does not answer, or no longer answers. */
export function unreachable(baseUrl: string, cause: unknown): SandboxError {
  const why = reasonOf(cause);
  return new SandboxError("node_unreachable", {
    message: `the node at ${baseUrl} cannot be reached${why === undefined ? "" : ` (${why})`}`,
    details: { url: baseUrl },
    cause,
  });
}

/** The error of fetch says only that it failed; its cause says why. */
function reasonOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined;
  const { code, cause, message } = thrown as Error & { code?: unknown };
  if (typeof code === "string" && code !== "") return code;
  return reasonOf(cause) ?? (message === "" ? undefined : message);
}
