import { SandboxError, type TerminalSize } from "@sandpiper/core";
import type { Guest, GuestProcess, GuestStartOptions } from "../guest/guest.ts";

/** $SHELL is the user's on this machine and says nothing about the sandbox. */
const shells = ["/bin/bash", "/bin/sh"] as const;

export interface ShellCommand {
  /** Empty for the sandbox's own shell. */
  readonly argv: readonly string[];
  readonly options: Omit<GuestStartOptions, "pty">;
}

/** Starts a command on a terminal; without one, the first shell that the sandbox has. */
export async function startShell(
  guest: Guest,
  { argv, options }: ShellCommand,
  pty: TerminalSize,
): Promise<GuestProcess> {
  if (argv.length > 0) return guest.start(argv, { ...options, pty });
  for (const shell of shells) {
    try {
      return await guest.start([shell], { ...options, pty });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.reason !== "no_such_program") throw error;
    }
  }
  throw new SandboxError("not_found", {
    reason: "no_such_program",
    message: `sandbox ${guest.id} has no shell: neither ${shells.join(" nor ")} exists in it`,
    hint: "name a program that it has: sandpiper shell -- PROGRAM",
  });
}
