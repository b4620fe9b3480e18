/** Tells programs inside what the user's terminal can do. */
export function terminalEnv(rootfs: string | undefined, callerEnv: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  // Another root filesystem may not describe this terminal; there the agent's own choice is safer.
  if (rootfs === undefined && callerEnv["TERM"]) env["TERM"] = callerEnv["TERM"];
  if (callerEnv["COLORTERM"]) env["COLORTERM"] = callerEnv["COLORTERM"];
  return env;
}
