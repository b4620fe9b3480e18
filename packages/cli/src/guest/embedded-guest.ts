import type { Sandbox } from "@sandpiper/core";
import type { Guest } from "./guest.ts";

/** A sandbox of this very program. */
export function embeddedGuest(sandbox: Sandbox): Guest {
  return {
    id: sandbox.id,
    provider: sandbox.provider,
    memoryMib: sandbox.config.memoryMib,
    diskMib: sandbox.config.diskMib,
    addresses: sandbox.addresses,
    files: sandbox.files,
    start: (argv, options) => sandbox.start(argv, { ...options, isRead: true }),
    exec: (argv, options) => sandbox.exec(argv, options),
  };
}
