export { loadNodeConfig, parseNodeConfig } from "./config/load-node-config.ts";
export type { NodeConfig, NodeConfigOptions } from "./config/node-config.ts";
export { runNode } from "./daemon/run-node.ts";
export { openReleases } from "./diagnose/open-releases.ts";
export { signStore } from "./start/sign-store.ts";
export { type RunningNode, type StartNodeOptions, startNode } from "./start/start-node.ts";
export { createLogger } from "./telemetry/logger.ts";
