import { isatty } from "node:tty";
import { destination, type Logger, type LoggerOptions, pino } from "pino";
import pretty from "pino-pretty";
import type { NodeConfig } from "../config/node-config.ts";
import { withoutCredentials, withoutSecrets } from "./hide-secrets.ts";

export type { Logger };

export interface CreateLoggerOptions extends Pick<NodeConfig, "logLevel" | "logFormat"> {
  /** Where lines go; standard output unless given. */
  readonly write?: ((line: string) => void) | undefined;
  readonly isTerminal?: boolean | undefined;
}

const STANDARD_OUTPUT = 1;

/** Lines for people on a terminal, JSON for programs elsewhere; credentials in neither. */
export function createLogger(options: CreateLoggerOptions): Logger {
  const { logLevel, logFormat, write, isTerminal = isatty(STANDARD_OUTPUT) } = options;
  const isPretty = logFormat === "pretty" || (logFormat === "auto" && isTerminal);
  const settings: LoggerOptions = {
    level: logLevel,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }), log: (fields) => ({ ...withoutSecrets(fields) }) },
    hooks: { streamWrite: withoutCredentials },
  };
  const output = write === undefined ? standardOutput() : { write };
  return pino(settings, isPretty ? prettyOver(output, isTerminal) : output);
}

/** Synchronous, so that the last line before an end is written too. */
function standardOutput() {
  const output = destination({ dest: STANDARD_OUTPUT, sync: true });
  // Whoever read the log has gone; that is no reason for a node to end.
  output.on("error", () => {});
  return output;
}

function prettyOver(output: { write(line: string): unknown }, isTerminal: boolean) {
  const format = pretty.prettyFactory({ colorize: isTerminal, translateTime: "SYS:HH:MM:ss", singleLine: true });
  return { write: (line: string) => void output.write(format(line) ?? line) };
}
