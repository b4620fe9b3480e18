import type { Arguments } from "../command/arguments.ts";
import type { Option } from "../command/option.ts";
import type { ProgressOptions } from "../output/progress.ts";

export const quietOption: Option = { name: "quiet", summary: "only say what went wrong" };

/** Whether progress is shown. */
export function progressOf(arguments_: Arguments): ProgressOptions {
  return arguments_.has("quiet") ? { isShown: false } : {};
}
