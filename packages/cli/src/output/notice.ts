import type { Arguments } from "../command/arguments.ts";

/** Says something on standard error that is not the command's own. */
export type Notice = (message: string) => void;

/** `--quiet` asks for none. */
export function noticeOf(arguments_: Arguments): Notice {
  if (arguments_.has("quiet")) return () => {};
  return (message) => process.stderr.write(`sandpiper: ${message}\n`);
}
