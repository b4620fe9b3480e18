import type { Option } from "../command/syntax.ts";

export const quietOption: Option = { name: "quiet", summary: "print only errors" };

export const followOption: Option = { name: "follow", short: "f", summary: "keep printing new output" };

/** For verbs that print a table on a terminal. */
export const jsonOption: Option = { name: "json", summary: "print JSON (default when the output is not a terminal)" };

/** For verbs that create or change a sandbox. */
export const sandboxJsonOption: Option = { name: "json", summary: "print the sandbox as a JSON object" };

export const timeoutOption: Option = {
  name: "timeout",
  value: "SECONDS",
  summary: "kill the command after SECONDS",
};

export const idleTimeoutOption: Option = {
  name: "idle-timeout",
  value: "DURATION",
  summary: "destroy the sandbox after DURATION without activity",
};

export const embeddedOption: Option = {
  name: "embedded",
  summary: "run the sandbox in this process, even if a node is running",
};
