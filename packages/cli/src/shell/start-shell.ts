import { SandboxError, type TerminalSize } from "@sandpiper/core";
import type { Guest, GuestProcess, GuestStartOptions } from "../guest/guest.ts";

/**
 * $SHELL is that of the user inside. The default is /bin/sh, where bash is the better choice, and accounts without a
 * login have nologin or false.
 */
const CHOOSE = `case "$SHELL" in
  */sh | */nologin | */false) ;;
  *) [ -x "$SHELL" ] && exec "$SHELL" ;;
esac
[ -x /bin/bash ] && exec /bin/bash
exec /bin/sh`;

/** The second for sandboxes without /bin/sh. */
const shells = [["/bin/sh", "-c", CHOOSE], ["/bin/bash"]] as const;

export interface ShellCommand {
  /** Empty for the user's shell. */
  readonly argv: readonly string[];
  readonly options: Omit<GuestStartOptions, "pty">;
}

/** Starts a command on a terminal; without one, the user's shell: $SHELL, bash, or sh. */
export async function startShell(
  guest: Guest,
  { argv, options }: ShellCommand,
  pty: TerminalSize,
): Promise<GuestProcess> {
  if (argv.length > 0) return guest.start(argv, { ...options, pty });
  for (const shell of shells) {
    try {
      return await guest.start(shell, { ...options, pty });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.reason !== "no_such_program") throw error;
    }
  }
  throw new SandboxError("no_such_program", {
    message: `sandbox ${guest.id} has no shell: neither /bin/sh nor /bin/bash exists in it`,
  });
}
