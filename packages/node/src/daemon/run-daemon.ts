import { SandboxError } from "@sandpiper/core";
import manifest from "../../package.json" with { type: "json" };
import { requireSafeBind } from "../config/bind-check.ts";
import { loadNodeConfig } from "../config/load-node-config.ts";
import type { NodeConfig } from "../config/node-config.ts";
import { reconciledCounts } from "../reconcile/node-reconciler.ts";
import { engineText } from "../sandboxes/engine-status.ts";
import type { StartNodeOptions } from "../start/start-node.ts";
import { createLogger, type Logger } from "../telemetry/logger.ts";
import { banner, type StartedNode } from "./banner.ts";
import { type SignalSource, StopSignals } from "./stop-signals.ts";
import { usage } from "./usage.ts";

export type StartNode = (config: NodeConfig, options: StartNodeOptions) => Promise<StartedNode>;

export interface RunDaemonOptions {
  readonly start: StartNode;
  readonly argv: readonly string[];
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly signals?: SignalSource | undefined;
  /** Ends the process at once. */
  readonly exit?: ((code: number) => void) | undefined;
  readonly stdout?: Output | undefined;
  readonly stderr?: Output | undefined;
}

interface Output {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

const EXIT_FAILED = 1;
const EXIT_WRONG_CONFIG = 2;

/** Runs a node until a signal stops it. Returns the program's exit code. */
export async function runDaemon(options: RunDaemonOptions): Promise<number> {
  const { argv, env = process.env, stdout = process.stdout, stderr = process.stderr } = options;
  if (argv.includes("--help")) return print(stdout, usage());
  if (argv.includes("--version")) return print(stdout, `sandpiper ${manifest.version}\n`);
  const exit = options.exit ?? ((code: number) => process.exit(code));
  using signals = new StopSignals({ source: options.signals ?? process, onSecond: exit });
  try {
    const config = await loadNodeConfig({ argv, env });
    requireSafeBind(config);
    const isTerminal = stdout.isTTY === true;
    const logger = createLogger({ ...config, isTerminal, write: options.stdout && ((line) => stdout.write(line)) });
    const node = await options.start(config, { logger });
    announce(node, { config, logger, stdout, isTerminal });
    const signal = await signals.first;
    const outcome =
      config.store === null
        ? "sandboxes keep running, and the next start adopts them"
        : "saving sandboxes for other nodes";
    logger.info({ signal }, `stopping; ${outcome}`);
    await node.stop();
    logger.info("stopped");
    return 0;
  } catch (thrown) {
    return report(thrown, stderr);
  }
}

interface Announcement {
  readonly config: NodeConfig;
  readonly logger: Logger;
  readonly stdout: Output;
  readonly isTerminal: boolean;
}

function announce(node: StartedNode, { config, logger, stdout, isTerminal }: Announcement): void {
  if (isTerminal && config.logFormat !== "json") {
    stdout.write(banner(node, { version: manifest.version, isInCluster: config.store !== null }));
    return;
  }
  const { url, apiKeyFile, reconciled, engines } = node;
  const engine = Object.fromEntries(engines.map(({ provider, status }) => [provider, engineText(status)]));
  const found = { ...engine, ...reconciledCounts(reconciled) };
  logger.info({ url, apiKeyFile, version: manifest.version, ...found }, "ready");
}

function report(thrown: unknown, stderr: Output): number {
  const error = SandboxError.from(thrown);
  const lines = [`sandpiper: ${error.message}`, error.hint && `  ${error.hint}`];
  // Only a bug in the node needs its stack.
  if (error.code === "internal" && thrown instanceof Error) lines.push(thrown.stack);
  stderr.write(`${lines.filter(Boolean).join("\n")}\n`);
  return error.reason === "invalid_config" ? EXIT_WRONG_CONFIG : EXIT_FAILED;
}

function print(output: Output, text: string): number {
  output.write(text);
  return 0;
}
