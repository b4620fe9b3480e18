import type { Option } from "../command/syntax.ts";

export const quietOption: Option = { name: "quiet", summary: "print only errors" };

export const followOption: Option = { name: "follow", short: "f", summary: "keep printing new output" };

/** For verbs that print a table on a terminal. */
export const jsonOption: Option = { name: "json", summary: "print JSON (default when the output is not a terminal)" };

/** For verbs that create or change a sandbox. */
export const sandboxJsonOption: Option = { name: "json", summary: "print the sandbox as a JSON object" };

export const timeoutOption: Option = {
  name: "timeout",
  value: "DURATION",
  summary: "kill the command after DURATION, such as 30 (seconds), 1s or 5m",
};

/** A copy of the protocol's table, which would take long to load. */
const languages = ["python", "javascript", "typescript", "bash", "sh"];

/** For verbs that run a command. */
export const languageOption: Option = {
  name: "language",
  value: "NAME",
  choices: languages,
  summary: "run source code instead of a command: a file of this machine, or - for standard input, in language NAME",
};

/** For verbs that create a sandbox that stays. */
export const defaultLanguageOption: Option = {
  name: "language",
  value: "NAME",
  choices: languages,
  summary: "default language of source code that runs in the sandbox",
};

export const checkpointsOption: Option = {
  name: "checkpoints",
  value: "POLICY",
  summary: "take checkpoints automatically: idle, disconnect, command, every=5m, keep=3, joined by commas; or none",
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
