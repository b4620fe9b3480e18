import { isatty } from "node:tty";
import { destination, type Logger, type LoggerOptions, pino } from "pino";
import pretty from "pino-pretty";
import type { NodeConfig } from "../config/node-config.ts";
import { withoutCredentials, withoutSecrets } from "./hide-secrets.ts";

export type { Logger };

export interface CreateLoggerOptions extends Pick<NodeConfig, "logLevel" | "logFormat"> {
  /** Receives the lines; standard output by default. */
  readonly write?: ((line: string) => void) | undefined;
  readonly isTerminal?: boolean | undefined;
}

const STANDARD_OUTPUT = 1;

/** Logs readable lines to a terminal and JSON elsewhere, without credentials. */
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

/** Synchronous, so that the last line before the process ends is written. */
function standardOutput() {
  const output = destination({ dest: STANDARD_OUTPUT, sync: true });
  // The node keeps running when the reader of its log has gone.
  output.on("error", () => {});
  return output;
}

function prettyOver(output: { write(line: string): unknown }, isTerminal: boolean) {
  const format = pretty.prettyFactory({ colorize: isTerminal, translateTime: "SYS:HH:MM:ss", singleLine: true });
  return { write: (line: string) => void output.write(format(line) ?? line) };
}
