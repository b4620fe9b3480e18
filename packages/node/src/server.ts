export { type RunningNode, type StartNodeOptions, startNode } from "./start/start-node.ts";
export { loadNodeConfig, parseNodeConfig } from "./config/load-node-config.ts";
export type { NodeConfig, NodeConfigOptions } from "./config/node-config.ts";
export { createLogger } from "./daemon/logger.ts";
export { runNode } from "./daemon/run-node.ts";
