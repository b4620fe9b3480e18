import { SandboxError } from "@sandpiper/core";
import type { ErrorReason } from "@sandpiper/protocol";

/** Converts the error of `listen` into one with a hint. */
export function explainListenError(thrown: unknown, where: { readonly host: string; readonly port: number }) {
  const { host, port } = where;
  const code = (thrown as NodeJS.ErrnoException).code;
  const error = (reason: ErrorReason, message: string, hint: string) =>
    new SandboxError(reason, { message, hint, details: { host, port }, cause: thrown });
  if (code === "EADDRINUSE") {
    return error(
      "port_in_use",
      `port ${port} of ${host} is in use`,
      "another node may be running; choose another port with --port or SANDPIPER_PORT, or 0 for a free one",
    );
  }
  if (code === "EACCES") {
    return error(
      "port_not_allowed",
      `no permission to listen on port ${port} of ${host}`,
      "choose a port of 1024 or above with --port or SANDPIPER_PORT",
    );
  }
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN") {
    return error(
      "no_such_host",
      `this machine has no address ${host} to listen on`,
      "set --host or SANDPIPER_HOST to an address of this machine",
    );
  }
  return SandboxError.from(thrown);
}
