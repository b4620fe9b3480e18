import { type ProcessHandle, type Sandbox, SandboxError, type TerminalSize } from "@sandpiper/core";

/** $SHELL is the user's on this machine and says nothing about the sandbox. */
const shells = ["/bin/bash", "/bin/sh"] as const;

export interface ShellCommand {
  /** Empty for the sandbox's own shell. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Starts a command on a terminal; without one, the first shell that the sandbox has. */
export async function startShell(
  sandbox: Sandbox,
  { argv, env }: ShellCommand,
  pty: TerminalSize,
): Promise<ProcessHandle> {
  if (argv.length > 0) return sandbox.start(argv, { pty, env });
  for (const shell of shells) {
    try {
      return await sandbox.start([shell], { pty, env });
    } catch (error) {
      if (!(error instanceof SandboxError) || error.reason !== "no_such_program") throw error;
    }
  }
  throw new SandboxError("not_found", {
    reason: "no_such_program",
    message: `sandbox ${sandbox.id} has no shell: neither ${shells.join(" nor ")} exists in it`,
    hint: "name a program that it has: sandpiper shell -- PROGRAM",
  });
}
